package command

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db"
)

// A key that does not fit on a line is not written as two lines.
func TestExportKeys(t *testing.T) {
	f := newFixture(t, 10, false)
	must(t, "put", f.db, "two\nlines")
	code, _, stderr := do(t, "export", f.db, "--keys", f.path("ids.txt"))
	if code != exit.Failed || !strings.Contains(stderr,
		`--keys: the key "two\nlines" does not fit on a line: use --items`) {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	if _, err := os.Stat(f.path("ids.txt")); !os.IsNotExist(err) {
		t.Errorf("ids.txt: %v", err)
	}
	must(t, "export", f.db, "--items", f.path("items.jsonl"))
	b, err := os.ReadFile(f.path("items.jsonl"))
	if err != nil || strings.Count(string(b), "\n") != 11 ||
		!strings.Contains(string(b), `{"key":"two\nlines","labels":[]}`) {
		t.Errorf("%s, %v", b, err)
	}
	// export writes the same as get prints.
	if got := must(t, "get", f.db, "0", "--json"); !strings.HasPrefix(string(b), got) {
		t.Errorf("get says %s", got)
	}
}

// Items that are read ahead come in order, with the error that ends them. Reading stops
// when the caller stops.
func TestAhead(t *testing.T) {
	broken := errors.New("broken")
	numbered := func(n, payload int, end error, left *bool) iter.Seq2[*db.Item, error] {
		return func(yield func(*db.Item, error) bool) {
			defer func() { *left = true }()
			for i := range n {
				if !yield(&db.Item{Key: fmt.Sprint(i), Payload: make([]byte, payload)}, nil) {
					return
				}
			}
			if end != nil {
				yield(nil, end)
			}
		}
	}
	for _, c := range []struct {
		n, payload, wanted int
		end                error
	}{
		{0, 0, 1, nil}, {0, 0, 1, broken}, {1, 0, 2, nil}, {255, 0, 1000, broken}, {256, 0, 1000, nil},
		{1000, 0, 2000, broken}, {10, aheadBytes, 20, broken}, {100_000, 10, 700, nil},
		{100, aheadBytes, 1, nil},
	} {
		left, got := false, 0
		var err error
		for it, e := range ahead(numbered(c.n, c.payload, c.end, &left)) {
			if err = e; err != nil {
				continue // there is nothing after it
			}
			if it.Key != fmt.Sprint(got) {
				t.Fatalf("%+v: item %s where %d was to come", c, it.Key, got)
			}
			if got++; got == c.wanted {
				break
			}
		}
		if got != min(c.n, c.wanted) || c.wanted > c.n && !errors.Is(err, c.end) {
			t.Errorf("%+v: %d items and %v", c, got, err)
		}
		if !left {
			t.Errorf("%+v: the items are still being read", c)
		}
	}
}
