package jsontext

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// decode reads a value with the scanner and returns it as encoding/json does, with numbers as text.
func decode(s *Scanner) (any, error) {
	switch s.Kind() {
	case Object:
		out := map[string]any{}
		err := s.Object(func(name []byte) error {
			key := string(name)
			v, err := decode(s)
			out[key] = v
			return err
		})
		return out, err
	case Array:
		out := []any{}
		err := s.Array(func() error {
			v, err := decode(s)
			out = append(out, v)
			return err
		})
		return out, err
	case String:
		return s.String()
	case Bool:
		return s.Bool()
	case Null:
		return nil, s.Null()
	}
	text, err := s.Number()
	return json.Number(text), err
}

func oracle(b []byte) (v any, err error) {
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	if !json.Valid(b) {
		return nil, strconv.ErrSyntax
	}
	return v, d.Decode(&v)
}

// Half a character is an error, and not a question mark.
func TestHalfCharacters(t *testing.T) {
	var s Scanner
	for text, good := range map[string]bool{
		`"\ud83d\ude00"`: true, `"\ufffd"`: true, `"\\ud800\ufffd"`: true, `"x\\\ud83d\ude00\ufffd"`: true,
		`"\ud800"`: false, `"a\udc00b"`: false, `"\ud83dx\ude00"`: false, `"\ude00\ud83d"`: false,
		`"\ud83d\ud83d\ude00"`: false,
	} {
		s.Reset([]byte(text))
		if x, err := s.String(); (err == nil) != good || err != nil && !errors.Is(err, errHalf) {
			t.Errorf("%s: %q, %v", text, x, err)
		}
	}
}

func FuzzScanner(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,2.5e-3,-0],"b":{"c":"x\u00e9\n\ud83d\ude00"},"d":[true,false,null,[],{}]}`,
		`[1,2,,3]`, `[01]`, `[1.]`, `[.5]`, `[1e]`, `[+1]`, `{"a" 1}`, `{"a":1,}`, `["\x"]`, "[\"\x01\"]",
		`"\ud800"`, ` [ ] `, `[1] 2`,
		`[123456789012345678901234567890.5e-10, 0.00000000000000000000000000000001]`,
		strings.Repeat("[", 2000), "[\"\xff\"]",
		`[NaN, -Infinity, "a", null, {"x": [1]}]`, `nul`, `[1e999, -1e999, 1e-999]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Scanner
		s.Reset(b)
		got, err := decode(&s)
		if err == nil {
			err = s.End()
		}
		want, wantErr := oracle(b)
		if (err == nil) != (wantErr == nil) && !errors.Is(err, errHalf) && utf8.Valid(b) &&
			strings.Count(string(b), "[")+strings.Count(string(b), "{") < maxDepth {
			t.Fatalf("%v, encoding/json says %v", err, wantErr)
		}
		if err == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("%#v, encoding/json has %#v", got, want)
		}
		// Skipped values are checked alike.
		s.Reset(b)
		skipped := s.Skip()
		if skipped == nil {
			skipped = s.End()
		}
		if (skipped == nil) != (err == nil) {
			t.Fatalf("skipped: %v, read: %v", skipped, err)
		}
		s.Reset(b)
		x, err := s.Float32s(nil, 1000)
		if end := s.End(); err != nil || end != nil {
			return
		}
		list, ok := want.([]any)
		if !ok || len(list) != len(x) {
			t.Fatalf("%d numbers of %#v", len(x), want)
		}
		s.Reset(b)
		if n, err := s.Count(); err != nil || n != len(x) {
			t.Fatalf("%d values, %v, counted of %d", n, err, len(x))
		}
		for i, v := range list {
			same(t, string(v.(json.Number)), x[i])
		}
	})
}

// same compares a number with strconv's result for its text.
func same(t *testing.T, text string, got float32) {
	t.Helper()
	want, err := strconv.ParseFloat(text, 32)
	if err != nil {
		t.Fatalf("%s is %v: %v", text, got, err)
	}
	if math.Float32bits(got) != math.Float32bits(float32(want)) {
		t.Errorf("%s is %v (%#x), not %v (%#x)", text, got, math.Float32bits(got), want,
			math.Float32bits(float32(want)))
	}
}

func read(t *testing.T, text string) float32 {
	t.Helper()
	var s Scanner
	s.Reset([]byte(text))
	x, err := s.Float32()
	if err == nil {
		err = s.End()
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return x
}

// Every way to write a float32 gives the nearest one, also if the number lies between two of them or almost
// so.
func TestNumbersAreRoundedOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	try := func(text string) { same(t, text, read(t, text)) }
	rounds := 20_000
	if testing.Short() {
		rounds = 1000
	}
	for range rounds {
		bits := random.Uint32() &^ (1 << 31)
		if random.IntN(2) == 0 { // as large as features are
			bits = 0x3f800000 + random.Uint32N(1<<25) - 1<<24
		}
		x := float64(math.Float32frombits(bits))
		next := float64(math.Float32frombits(bits + 1))
		if math.IsInf(next, 0) || math.IsNaN(next) {
			continue
		}
		try(strconv.FormatFloat(x, 'g', -1, 32))
		try(strconv.FormatFloat(x, 'f', -1, 64))
		try("-" + strconv.FormatFloat(x, 'e', 16, 64))
		middle := (x + next) / 2
		for _, y := range []float64{middle, math.Nextafter(middle, 0), math.Nextafter(middle, 1e300)} {
			try(strconv.FormatFloat(y, 'g', -1, 64))
			try(strconv.FormatFloat(y, 'e', 18, 64))
		}
		exact := strconv.FormatFloat(middle, 'f', -1, 64)
		if !strings.Contains(exact, ".") {
			exact += "."
		}
		try(exact + "0000000000000000000001")
	}
	for _, s := range []string{"0", "-0", "0.0e-400", "1e-400", "3.4028235e38", "3.40282356e38",
		"-3.4028235677973366e38",
		"1.1754943e-38", "1.4e-45", "7e-46", "7.1e-46", "9007199254740993", "18446744073709551615",
		"18446744073709551616",
		"99999999999999999999999999", "1000000000000000000000e-21",
		"0.000000000000000000000000000000000000011754943508"} {
		try(s)
	}
}

func TestWhatIsNoNumber(t *testing.T) {
	for text, want := range map[string]string{
		"[1,NaN,2]":    "number 1: NaN is not a finite number",
		"[-Infinity]":  "number 0: -Infinity is not a finite number",
		"[1e39]":       "number 0: \"1e39\" is too large for float32",
		"[1,null]":     "number 1: is null, where a number is expected",
		`["1"]`:        "number 0: is a string, where a number is expected",
		"[1,[2]]":      "number 1: is an array, where a number is expected",
		"[1,2":         "byte 4: ',' or ']' is expected where the text ends",
		"[1,2,]":       "byte 5: a number is expected, not \"]\"",
		"[1 2]":        "byte 3: ',' or ']' is expected, not \"2]\"",
		"[1,2,3,4]":    "a vector has more than 3 numbers",
		"{}":           "byte 0: an array is expected, not \"{}\"",
		"[0x10]":       "byte 2: ',' or ']' is expected, not \"x10]\"",
		"[1_0]":        "byte 2: ',' or ']' is expected, not \"_0]\"",
		"[--1]":        "byte 1: a number is expected, not \"--1]\"",
		"[1e999,NaN,]": "byte 11: a number is expected",
	} {
		var s Scanner
		s.Reset([]byte(text))
		if _, err := s.Float32s(nil, 3); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
