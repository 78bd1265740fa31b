package fields_test

import (
	"strings"
	"testing"

	"prp/harness/fields"
	"prp/protocol"
)

// TestObject: what was added stands in the object in its order, and nothing
// stands for what is empty.
func TestObject(t *testing.T) {
	f := fields.New()
	if got := string(f.Object()); got != "{}" || f.Any() {
		t.Errorf("without members: %s, any %v", got, f.Any())
	}
	f.Text("empty", "").Short("empty", "").Raw("empty", nil, 8).Raw("null", []byte("null"), 8)
	if got := string(f.Object()); got != "{}" || f.Any() {
		t.Errorf("with nothing in its members: %s, any %v", got, f.Any())
	}
	f.Text("a", "x\n\"\xff").Number("b", -1).Truth("c", true).Own("d", []byte("[1,2]")).Short("e", "é")
	const want = `{"a":"x\n\"�","b":-1,"c":true,"d":[1,2],"e":"é"}`
	if got := string(f.Object()); got != want || !f.Any() {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := string(f.Append([]byte("before "))); got != "before "+want {
		t.Errorf("appended: %s", got)
	}
	f = fields.New().With(nil).With(fields.New()).With(fields.New().Number("a", 1)).With(fields.New().Number("b", 2))
	if got, want := string(f.Object()), `{"a":1,"b":2}`; got != want {
		t.Errorf("with those of others: %s, want %s", got, want)
	}
}

// TestForeign: what another program wrote has a bound and is strict, and what is
// missing is said (prp.md section 4).
func TestForeign(t *testing.T) {
	long := strings.Repeat("é", fields.MaxShort)
	head := strings.Repeat("é", fields.MaxShort/2)
	for name, c := range map[string]struct {
		f    *fields.Fields
		want string
	}{
		"short":          {fields.New().Short("n", long), `{"n":"` + head + `","nTruncatedBytes":1024}`},
		"raw":            {fields.New().Raw("n", []byte(`{"a" : 1e3}`), 16), `{"n":{"a" : 1e3}}`},
		"a name twice":   {fields.New().Raw("n", []byte(`{"a":1,"a":2}`), 16), `{"n":{"head":"{\"a\":1,\"a\":2}","truncatedBytes":0}}`},
		"no UTF-8":       {fields.New().Raw("n", []byte("\"\xff\""), 16), `{"n":{"head":"\"�\"","truncatedBytes":0}}`},
		"above a limit":  {fields.New().Raw("n", []byte(`"12345"`), 4), `{"n":{"head":"\"123","truncatedBytes":3}}`},
		"above MaxShort": {fields.New().Raw("n", []byte(`"`+long+`"`), 1<<10), `{"n":{"head":"\"` + head[:fields.MaxShort-2] + `","truncatedBytes":1027}}`},
	} {
		got := string(c.f.Object())
		if got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		if err := protocol.CheckJSON([]byte(got)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
