package instant

import (
	"errors"
	"strings"
	"testing"
	"time"

	_ "github.com/fddhdb/fddhdb/internal/seed"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"2024":                                "2024-01-01T00:00:00Z",
		"2024-05":                             "2024-05-01T00:00:00Z",
		"2024-05-31":                          "2024-05-31T00:00:00Z",
		"2024-05-31T23:59":                    "2024-05-31T23:59:00Z",
		"2024-05-31 23:59:58":                 "2024-05-31T23:59:58Z",
		"2024-05-31t23:59:58z":                "2024-05-31T23:59:58Z",
		"2024-05-31T23:59:58.25Z":             "2024-05-31T23:59:58.25Z",
		"2024-05-31T23:59:58.123456789+02:00": "2024-05-31T21:59:58.123456Z",
		"2024-05-31 23:59:58-0530":            "2024-06-01T05:29:58Z",
		"2024-05-31 23:59:58.5+00":            "2024-05-31T23:59:58.5Z", // as PostgreSQL and DuckDB print it
		"1969-12-31T23:59:59.9999999Z":        "1969-12-31T23:59:59.999999Z",
		"0000-01-01":                          "0000-01-01T00:00:00Z",
		"9999-12-31T23:59:59.999999Z":         "9999-12-31T23:59:59.999999Z",
	} {
		got, err := Parse(text)
		if err != nil || Format(got) != want {
			t.Errorf("%s is %s, %v, not %s", text, Format(got), err, want)
		}
		if IsDate(text) != (len(text) >= len("2024-05-31") && !strings.Contains(text, "6789") &&
			!strings.Contains(text, ".9999999Z")) {
			t.Errorf("%s is a date: %v", text, IsDate(text))
		}
	}
	for _, text := range []string{"", "24", "20240", "202405", "2024-5-1", "2024-02-30", "2024-13",
		"2024/05/31", "31.05.2024", "2024-05-31T", "2024-05-31T23", "2024-05-31T7:30",
		"2024-05-31T24:00:00", "2024-05-31T23:59:58,5", "2024-05-31T23:59:58+", "2024-05-31T23:59:58+1",
		"2024-05-31_23:59", "2024-05-31T23:59:58 Z", " 2024-05-31", "2024-05-31 ",
		"20240531T101112", "20240531101112", "today", "a long text", "-0001-01-01"} {
		if got, err := Parse(text); !errors.Is(err, ErrNoTime) || IsDate(text) {
			t.Errorf("%q is %s, %v", text, Format(got), err)
		}
	}
	for _, text := range []string{"0000-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "10000-01-01",
		"20240-05-01T00:00:00Z"} {
		if got, err := Parse(text); !errors.Is(err, ErrFar) || IsDate(text) {
			t.Errorf("%q is %s, %v", text, Format(got), err)
		}
	}
	for text, want := range map[string]bool{"2024-05-31T00:00:00.123456000Z": true,
		"2024-05-31T00:00:00.1234561Z": false, "2024-05-31T00:00:00.0000000001Z": false} {
		if IsDate(text) != want {
			t.Errorf("%s is a date: %v", text, !want)
		}
	}
}

// What is formatted is read back, and Go's own reader agrees.
func TestFormat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(Least, Most).Draw(t, "micros")
		text := Format(micros)
		back, err := Parse(text)
		if err != nil || back != micros || !IsFormatted(text) || !IsDate(text) {
			t.Fatalf("%d is %s, and that %d, %v", micros, text, back, err)
		}
		std, err := time.Parse(time.RFC3339, text)
		if again, far := Of(std); err != nil || far != nil || again != micros || !Time(micros).Equal(std) {
			t.Fatalf("%d is %s, and that %s, %v", micros, text, std, err)
		}
	})
	for _, text := range []string{"2024-05-31", "2024-05-31T00:00:00+00:00", "2024-05-31T00:00:00.50Z",
		"2024-05-31 00:00:00Z", "", "2024"} {
		if IsFormatted(text) {
			t.Errorf("%s is formatted", text)
		}
	}
}

func TestOf(t *testing.T) {
	for _, at := range []time.Time{time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(-1, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(1<<40, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if _, err := Of(at); !errors.Is(err, ErrFar) {
			t.Errorf("%s: %v", at, err)
		}
	}
	if micros, err := Of(time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.UTC)); err != nil ||
		micros != -1 {
		t.Error(micros, err)
	}
	const day = 86_400_000_000
	if micros, err := Scale(-719_528, day); err != nil || micros != Least {
		t.Error(micros, err)
	}
	for _, n := range []int64{1 << 31, -1 << 31, 1 << 62, -1 << 62, 2_932_897} {
		if micros, err := Scale(n, day); !errors.Is(err, ErrFar) {
			t.Error(n, micros, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("2024-05-31T23:59:58.123456789+02:00")
	f.Add("2024-05")
	f.Add("2024-05-31 23:59:58+00")
	f.Add("12024-05-31")
	f.Fuzz(func(t *testing.T, s string) {
		at, err := Parse(s)
		if err != nil {
			if IsDate(s) || IsFormatted(s) {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		if !Has(at) || !IsFormatted(Format(at)) {
			t.Errorf("%q is %d", s, at)
		}
	})
}
