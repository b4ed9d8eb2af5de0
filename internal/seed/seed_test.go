package seed

import (
	"flag"
	"strings"
	"testing"
)

// A recorder is a testing.TB that keeps its log.
type recorder struct {
	testing.TB
	said []string
}

func (r *recorder) Helper() {}
func (r *recorder) Logf(format string, args ...any) {
	r.said = append(r.said, format)
}

func TestFrom(t *testing.T) {
	defer func(was uint64) { moved = was; rapid(max(1, was)) }(moved)
	moved = 0
	r := &recorder{TB: t}
	if got := From(r, 7); got != 7 || len(r.said) > 0 {
		t.Errorf("fixed: %d, said %q", got, r.said)
	}
	if Rand(r, 7, 1).Uint64() != Rand(r, 7, 1).Uint64() || Rand(r, 7, 1).Uint64() == Rand(r, 7, 2).Uint64() {
		t.Error("the numbers do not follow from seed and stream")
	}
	if err := set("123"); err != nil {
		t.Fatal(err)
	}
	if got := From(r, 7); got != 123 || len(r.said) != 1 || !strings.Contains(r.said[0], "-seed") {
		t.Errorf("given: %d, said %q", got, r.said)
	}
	if s := flag.Lookup("rapid.seed").Value.String(); s != "123" {
		t.Errorf("rapid begins with %s", s)
	}
	if err := set("new"); err != nil {
		t.Fatal(err)
	}
	a := From(r, 7)
	if err := set("new"); err != nil {
		t.Fatal(err)
	}
	if b := From(r, 7); a == b || a == 0 || b == 0 {
		t.Errorf("new seeds are %d and %d", a, b)
	}
	for _, wrong := range []string{"0", "-1", "x", ""} {
		if set(wrong) == nil {
			t.Errorf("seed %q is accepted", wrong)
		}
	}
}
