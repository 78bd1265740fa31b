package bridge

import (
	"strings"
	"testing"
)

func TestCheckDoor(t *testing.T) {
	for _, tt := range []struct {
		id, dir, want string
	}{
		{"é", "state", ""},
		{strings.Repeat("é", 8), "state", ""},
		{"", "state", "id: expected 1 to 8 characters, got 0"},
		{strings.Repeat("é", 9), "state", "id: expected 1 to 8 characters, got 9"},
		{"é", "", "expected a folder for the state, got none"},
	} {
		err := CheckDoor(tt.id, 8, tt.dir)
		if (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
			t.Errorf("id %q, folder %q: %v, want %q", tt.id, tt.dir, err, tt.want)
		}
	}
}
