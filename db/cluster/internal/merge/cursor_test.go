package merge_test

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/merge"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// begun returns the cursor behind the first hit of each shard that is not "" here; "end" is one at its end.
func begun(t testing.TB, cursors ...string) merge.Cursor {
	t.Helper()
	answers := make([]*db.Result, len(cursors))
	k := 1
	for i, c := range cursors {
		if c == "" {
			continue
		}
		r := &db.Result{Space: 7, Revision: 1 << 20, Rerank: db.RerankNone}
		if answers[i] = r; c != "end" {
			r.Hits, k = []db.Hit{{Key: fmt.Sprint(i), Cursor: c}}, k+1
			r.Next = c
		}
	}
	at := merge.Cursor{}
	for i := range answers { // one by one, as one that has more ends a page
		one := make([]*db.Result, len(answers))
		if one[i] = answers[i]; one[i] == nil {
			continue
		}
		var err error
		if _, at, err = merge.Page(one, at, merge.Want{K: k}); err != nil {
			t.Fatal(err)
		}
	}
	return at
}

// sealed makes a text of the bytes of a cursor before their checksum.
func sealed(b []byte) string {
	b = slices.Clone(b)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	return base64.RawURLEncoding.EncodeToString(b)
}

func TestCursorsTravel(t *testing.T) {
	cursors := []string{"", "end", "AAAA", "AAAB", "not base64!", "AAAB", "A", strings.Repeat("x", 255), ""}
	c := begun(t, cursors...)
	text := c.String()
	if !regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(text) {
		t.Errorf("%q does not go into a URL", text)
	}
	got, err := merge.ParseCursor(text, len(cursors))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range cursors {
		ended := want == "end"
		if ended {
			want = ""
		}
		if got.After(i) != want || got.Ended(i) != ended {
			t.Errorf("shard %d: %q, %v", i, got.After(i), got.Ended(i))
		}
	}
	if b, ok := got.Basis(); !ok || b != (merge.Basis{Space: 7, Revision: 1 << 20, Rerank: db.RerankNone}) {
		t.Errorf("%+v", b)
	}
	if got.Done() || !begun(t, "end", "end").Done() {
		t.Error("done")
	}
	start, err := merge.ParseCursor("", 5)
	if err != nil || start.String() != "" || start.Done() || start.Ended(4) || start.After(4) != "" {
		t.Errorf("%v, %v", start, err)
	}
	if _, ok := start.Basis(); ok {
		t.Error("the start has a basis")
	}
}

// Programs keep cursors: these have this text in every version.
func TestCursorsArePinned(t *testing.T) {
	const want = "gQUAAwcAAAAAABAAAQIAAwAAAAICAUEAAwACeCFkMa1S"
	if got := begun(t, "end", "AAAA", "AABB", "", "x!").String(); got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

func TestParseCursorRefuses(t *testing.T) {
	good := begun(t, "end", "AAAA", "")
	b, err := base64.RawURLEncoding.DecodeString(good.String())
	if err != nil {
		t.Fatal(err)
	}
	b = b[:len(b)-4]
	with := func(at int, x byte) string {
		own := append([]byte(nil), b...)
		own[at] = x
		return sealed(own)
	}
	if with(0, 0x81) != good.String() {
		t.Fatal("the test seals otherwise")
	}
	const none = "it is not one that a search over shards has returned"
	single, err := cursorOfOne(t)
	if err != nil {
		t.Fatal(err)
	}
	for what, x := range map[string]struct{ text, why string }{
		"text":             {"hello", none},
		"a shard's own":    {single, none},
		"a byte less":      {good.String()[1:], none},
		"a line break":     {good.String() + "\n", none},
		"padding":          {good.String() + "=", none},
		"damage":           {strings.Replace(good.String(), "A", "B", 1), none},
		"another version":  {with(0, 0x89), "the cursor is of version 9, and this program has version 1"},
		"other shards":     {with(1, 4), "the cursor is over 4 shards; now there are 3"},
		"an unknown state": {with(13, 7), none},
		"shares too much":  {with(14, 1), none},
		"is too long":      {with(15, 9), none},
		"more behind":      {sealed(append(append([]byte(nil), b...), 0)), none},
		"no places":        {sealed(b[:12]), none},
		"too few places":   {sealed(b[:len(b)-1]), none},
		"another basis":    {with(3, 0), none}, // one that nobody has answered on has no space
		"bytes as text": {sealed(append(append([]byte(nil), b[:13]...), 3, 0, 4, 'A', 'A', 'A', 'A', 0)),
			none},
		"nothing behind": {sealed(append(append([]byte(nil), b[:13]...), 2, 0, 0, 0)), none},
		"shares too little": {sealed(append(append([]byte(nil), b[:12]...), 2, 0, 3, 1, 2, 3, 2, 1, 2, 2, 3,
			1)), none},
		"very long": {strings.Repeat("A", 30<<20), none},
	} {
		if _, err := merge.ParseCursor(x.text, 3); !refused(err) || !strings.Contains(err.Error(), x.why) {
			t.Errorf("%s: %v", what, err)
		} else if len(err.Error()) > 400 {
			t.Errorf("%s: a message of %d bytes", what, len(err.Error()))
		}
	}
	if _, err := merge.ParseCursor(sealed([]byte{0x81, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), 0); !refused(err) {
		t.Error(err)
	}
}

// cursorOfOne returns the cursor of one database.
func cursorOfOne(t testing.TB) (string, error) {
	_, c := dbkit.OpenCoded(t, 16)
	for _, it := range dbkit.CodeItems(10, 16, 1, nil) {
		if _, err := c.Put(ctx, it); err != nil {
			return "", err
		}
	}
	r, err := c.Search(ctx, db.Query{Code: []byte{1, 2}, K: 3})
	if err != nil {
		return "", err
	}
	return r.Next, nil
}

// A cursor over 64 shards, all of them begun, is no longer than its comment says; ones as long as can be
// go to and fro as well.
func TestCursorsAreShort(t *testing.T) {
	dbkit.LongTest(t)
	c := collections()[0].cut(t, 700, 64)
	q := db.Query{From: "image", Vector: pairs(1, 0, 77)[0].Vectors["image"], Rerank: db.RerankProjection,
		K: 10}
	var at merge.Cursor
	longest, open := 0, 0
	for !at.Done() {
		var err error
		if _, at, err = c.page(t, q, -1, at, merge.Want{K: 10}); err != nil {
			t.Fatal(err)
		}
		n := len(at.String())
		if longest == 0 {
			t.Logf("%d bytes behind the first page of 10", n)
		}
		if n > longest {
			longest, open = n, 0
			for i := range c.shards {
				if at.After(i) != "" {
					open++
				}
			}
		}
	}
	t.Logf("%d bytes at most, with %d of 64 shards begun", longest, open)
	if longest > 2600 {
		t.Error("longer than it says")
	}
	long := make([]string, 64)
	for i := range long {
		long[i] = fmt.Sprintf("%d!%0253d", i%10, i)
	}
	text := begun(t, long...).String()
	t.Logf("%d bytes if each shard's cursor has 255", len(text))
	if len(text) > 22<<10 {
		t.Error("longer than it says")
	}
}

func FuzzParseCursor(f *testing.F) {
	for _, c := range []merge.Cursor{{}, begun(f, "end", "AAAA", ""), begun(f, "AAAA", "AAAB", "x!y")} {
		f.Add(c.String(), 3)
		if b, err := base64.RawURLEncoding.DecodeString(c.String()); err == nil && len(b) > 4 {
			f.Add(string(b[:len(b)-4]), 3) // to be sealed
		}
	}
	f.Fuzz(func(t *testing.T, s string, shards int) {
		for _, text := range []string{s, sealed([]byte(s))} {
			c, err := merge.ParseCursor(text, shards)
			if err != nil {
				if !refused(err) {
					t.Fatal(err)
				}
				continue
			}
			if c.String() != text {
				t.Fatalf("%q becomes %q", text, c.String())
			}
			if text == "" {
				continue
			}
			for i := range shards {
				if c.Ended(i) && c.After(i) != "" {
					t.Fatal("a shard at its end goes on")
				}
			}
			_ = c.Done()
			if _, to, err := merge.Page(make([]*db.Result, shards), c, merge.Want{K: 1}); err == nil &&
				to.String() != text {
				t.Fatal("a page of no answers has moved the cursor")
			}
		}
	})
}
