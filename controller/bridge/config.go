package bridge

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Fill gives a member of a configuration its default where it is zero or less.
func Fill[T int | int64 | time.Duration](at *T, value T) {
	if *at <= 0 {
		*at = value
	}
}

// CheckDoor checks what every door needs: an id of 1 to most characters, and a
// folder for its state.
func CheckDoor(id string, most int, dir string) error {
	if n := utf8.RuneCountInString(id); n == 0 || n > most {
		return fmt.Errorf("id: expected 1 to %d characters, got %d", most, n)
	}
	if dir == "" {
		return errors.New("expected a folder for the state, got none")
	}
	return nil
}
