package bridge

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

type outer struct {
	base
	Name  string          `json:"name,omitempty"`
	Raw   json.RawMessage `json:"raw"`
	At    time.Time       `json:"at"`
	Inner inner           `json:"inner"`
	More  *inner          `json:"more"`
	List  []inner         `json:"list"`
	Words []string        `json:"words"`
	Plain int
	Never string `json:"-"`
	kept  string
}

type base struct {
	ID string `json:"id"`
}

type inner struct {
	Count int            `json:"count"`
	Any   map[string]any `json:"any"`
}

// whole has every member of [outer].
const whole = `{"id":"i","name":"n","raw":{"NAME":[1]},"at":"2026-01-02T03:04:05Z","inner":{"count":1},"more":{"count":2},` +
	`"list":[{"count":3},{"any":{"Count":4}}],"words":["a","b"],"Plain":5}`

// TestDecode: what is written as its type says is read as encoding/json reads it.
func TestDecode(t *testing.T) {
	for _, text := range []string{whole, `{}`, `null`, " {\n \"name\" : \"n\" } ", `{"more":null,"list":null,"name":null,"words":null}`, `{"list":[]}`} {
		want, got, strict := outer{kept: "k"}, outer{kept: "k"}, outer{kept: "k"}
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		if err := Decode([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
		if err := DecodeStrict([]byte(text), &strict); err != nil || !reflect.DeepEqual(strict, want) {
			t.Errorf("%s: strictly %+v, %v, want %+v", text, strict, err, want)
		}
	}
}

// TestDecodeNames: a member in other letters is not known, at any depth, and takes
// nothing away from the one that is (prp.md section 1).
func TestDecodeNames(t *testing.T) {
	for text, path := range map[string]string{
		`{"name":"n","Name":"x"}`:         `expected no member "Name"`,
		`{"ID":"x"}`:                      `expected no member "ID"`,
		`{"plain":7}`:                     `expected no member "plain"`,
		`{"-":"x"}`:                       `expected no member "-"`,
		`{"Never":"x"}`:                   `expected no member "Never"`,
		`{"kept":"x"}`:                    `expected no member "kept"`,
		`{"base":{"id":"x"}}`:             `expected no member "base"`,
		`{"inner":{"Count":1}}`:           `inner: expected no member "Count"`,
		`{"more":{"COUNT":1}}`:            `more: expected no member "COUNT"`,
		`{"list":[{},{"count\u017f":1}]}`: `list[1]: expected no member`,
	} {
		want := outer{}
		if strings.Contains(text, `"name"`) {
			want.Name = "n"
		}
		got, strict := outer{}, outer{}
		if err := Decode([]byte(text), &got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		got.More, got.List = nil, nil // with nothing in them
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
		if err := DecodeStrict([]byte(text), &strict); err == nil || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: strictly %v, want %s", text, err, path)
		}
	}
	if err := DecodeStrict([]byte(`{"name":"n","name":"n"}`), new(outer)); err == nil {
		t.Error("a name that stands twice is taken")
	}
}

// TestDecodeTypes: an error names the whole path and the type, and the rest is
// read all the same.
func TestDecodeTypes(t *testing.T) {
	for text, path := range map[string]string{
		`{"inner":[],"name":"n"}`:                  "inner",
		`{"inner":{"count":"x"},"name":"n"}`:       "inner.count",
		`{"list":{},"name":"n"}`:                   "list",
		`{"list":[{},{"count":1.5}],"name":"n"}`:   "list[1].count",
		`{"more":true,"words":"x","name":"n"}`:     "more",
		`{"words":[1],"name":"n"}`:                 "words",
		`{"Plain":1e9999,"name":"n"}`:              "Plain",
		`{"inner":{"any":7,"count":1},"name":"n"}`: "inner.any",
		`{"list":[7,{"count":3}],"name":"n"}`:      "list[0]",
	} {
		var got outer
		err := Decode([]byte(text), &got)
		var wrong *json.UnmarshalTypeError
		if !errors.As(err, &wrong) || wrong.Field != path || wrong.Type == nil || strings.Contains(wrong.Type.String(), "RawMessage") {
			t.Errorf("%s: %v, want %s", text, err, path)
		}
		if got.Name != "n" {
			t.Errorf("%s: the rest was not read: %+v", text, got)
		}
	}
	for _, text := range []string{`[]`, `7`, `"x"`, `{`, ``, `{} {}`} {
		if err := Decode([]byte(text), new(outer)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
