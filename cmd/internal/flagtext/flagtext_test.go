package flagtext

import (
	"errors"
	"flag"
	"io"
	"testing"
)

func TestDescribe(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--recrod", "x"}, `flag "--recrod" is not known; did you mean "--record"?`},
		{[]string{"-zzzz"}, `flag "--zzzz" is not known`},
		{[]string{"---x"}, `expected --NAME or --NAME=VALUE, got "---x"`},
		{[]string{"--=\n\x1b[2K"}, `expected --NAME or --NAME=VALUE, got "--=\n\x1b[2K"`},
		{[]string{"--record"}, "--record: expected a value FILE"},
		{[]string{"--only"}, "--only: expected a value NAME"},
		{[]string{"--times", "soon"}, `--times: expected a whole number, got "soon"`},
		{[]string{"--patience=5"}, `--patience: expected a time such as 90s, got "5"`},
		{[]string{"--json=maybe"}, `--json: expected true or false, got "maybe"`},
		{[]string{"--only", "a: \"b\""}, `--only: expected a name without blanks, got "a: \"b\""`},
		{[]string{"--list", "a,b"}, `--list: expected one of x, y, got "b"`},
	} {
		fs := flag.NewFlagSet("test", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		fs.String("record", "", "write to `FILE`")
		fs.Int("times", 0, "")
		fs.Duration("patience", 0, "")
		fs.Bool("json", false, "")
		fs.Func("only", "`NAME`", func(string) error { return errors.New("expected a name without blanks") })
		fs.Func("list", "", func(string) error { return errors.New(`expected one of x, y, got "b"`) })
		err := fs.Parse(tt.args)
		if err == nil {
			t.Errorf("%q: no error", tt.args)
			continue
		}
		if got := Describe(fs, err); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.args, got, tt.want)
		}
	}
}
