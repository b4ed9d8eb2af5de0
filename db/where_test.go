package db_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

func TestWhereRefuses(t *testing.T) {
	d, c := dbkit.OpenPairs(t) // of which year is indexed
	need(c.Put(ctx, &db.Item{Key: "k", Labels: []string{"a"}}))(t)
	codes := need(d.CreateCollection(ctx, "codes", db.Schema{Bits: 8, Fields: []db.Field{{"size", db.Int, false}}}))(t)
	for _, tc := range []struct {
		c      *db.Collection
		where  string
		column int
		says   string
	}{
		{c, "label = ", 9, "a value is expected"},
		{c, "( ", 3, "is expected, not the end"},
		{c, "label = 'a' AND title = 1", 25, `field title is of type string`},
		{c, "size = 1", 1, `unknown field "size": the fields of collection "main" are year, title`},
		{c, "has(sound)", 5, `unknown modality or field "sound": collection "main" has the modalities image, text and the fields year`},
		{c, "year = 'x'", 8, "field year is of type int"},
		{codes, "site = 1", 1, `unknown field "site": the fields of collection "codes" are size`},
		{codes, "has(image)", 5, `the items of collection "codes" bring codes`},
		{c, strings.Repeat("(", 1<<20), 1, "bytes are too many"},
	} {
		for what, err := range map[string]error{
			"count":  dbkit.Second(tc.c.CountWhere(ctx, tc.where)),
			"delete": dbkit.Second(tc.c.DeleteWhere(ctx, tc.where)),
			"items":  firstError(tc.c, ctx, tc.where),
		} {
			var we *db.WhereError
			if !errors.As(err, &we) || !errors.Is(err, db.ErrInvalid) || we.Column != tc.column || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s %.40q: %v", what, tc.where, err)
			}
			if s := fmt.Sprint(err); !strings.HasPrefix(s, fmt.Sprintf("fddhdb: invalid argument: where: column %d: ", tc.column)) {
				t.Errorf("%s %.40q: %v", what, tc.where, err)
			}
		}
	}
	mustPutAndTrain(t, c)
	var we *db.WhereError
	if _, err := c.Search(ctx, db.Query{Key: "k1", Where: "year"}); !errors.As(err, &we) || we.Column != 5 {
		t.Errorf("search: %v", err)
	}
	if _, err := c.SearchRadius(ctx, db.Query{Key: "k1", Where: "year"}, 1); !errors.As(err, &we) {
		t.Errorf("search by radius: %v", err)
	}
	e := db.Evaluation{Queries: map[string][][]float32{"text": {{1, 2, 3, 4, 5}}}, Labels: [][]string{{"a"}}, Where: "year"}
	if _, err := c.Evaluate(ctx, e); !errors.As(err, &we) {
		t.Errorf("evaluate: %v", err)
	}
	if n, _ := c.Count(); n != 41 {
		t.Errorf("%d items", n)
	}
	cctx, cancel := context.WithCancel(ctx)
	cancel()
	for what, err := range map[string]error{
		"count":  dbkit.Second(c.CountWhere(cctx, "label = 'a'")),
		"delete": dbkit.Second(c.DeleteWhere(cctx, "label = 'a'")),
		"items":  firstError(c, cctx, "label = 'a'"),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: %v", what, err)
		}
	}
	dbkit.MustClose(t, d)
	for what, err := range map[string]error{
		"count":  dbkit.Second(c.CountWhere(ctx, "label = 'a'")),
		"delete": dbkit.Second(c.DeleteWhere(ctx, "label = 'a'")),
		"items":  firstError(c, ctx, "label = 'a'"),
	} {
		if !errors.Is(err, db.ErrClosed) {
			t.Errorf("%s, closed: %v", what, err)
		}
	}
}

func firstError(c *db.Collection, ctx context.Context, where string) error {
	for _, err := range c.ItemsWhere(ctx, where) {
		return err
	}
	return nil
}

func mustPutAndTrain(t *testing.T, c *db.Collection) {
	t.Helper()
	putAll(t, c, dbkit.Pairs(40, synth.Config{}))
	dbkit.MustTrain(t, c, db.TrainOptions{})
}

// A deletion that finds nothing commits nothing; one that finds something is a
// commit of its own and leaves readers what they have.
func TestDeleteWhere(t *testing.T) {
	d, c := dbkit.OpenCodes(t)
	for i := range 10 {
		need(c.Put(ctx, &db.Item{Key: fmt.Sprint(i), Code: []byte{1, 2}, Labels: []string{fmt.Sprint(i % 2)}}))(t)
	}
	sequence := func() uint64 {
		s := need(d.Stats())(t)
		return s.Sequence
	}
	before := sequence()
	if n, err := c.DeleteWhere(ctx, "label = 'x'"); n != 0 || err != nil || sequence() != before {
		t.Errorf("nothing: %d, %v, %d commits", n, err, sequence()-before)
	}
	seen := 0
	for it := range every(t, c.ItemsWhere(ctx, "label = '1'")) {
		if seen++; seen == 1 {
			if n, err := c.DeleteWhere(ctx, "label = '1'"); n != 5 || err != nil || sequence() != before+1 {
				t.Errorf("half: %d, %v, %d commits", n, err, sequence()-before)
			}
		}
		if it.Labels[0] != "1" {
			t.Errorf("%+v", it)
		}
	}
	if n, _ := c.Count(); seen != 5 || n != 5 {
		t.Errorf("%d seen, %d left", seen, n)
	}
	var we *db.WhereError
	for _, empty := range []string{"", "  ", "\t\n"} {
		if n, err := c.DeleteWhere(ctx, empty); n != 0 || !errors.As(err, &we) || !strings.Contains(err.Error(), "NOT label = ''") {
			t.Errorf("%q: %d deleted, %v", empty, n, err)
		}
	}
	if n, err := c.CountWhere(ctx, "  "); n != 0 || !errors.As(err, &we) || we.Column != 3 {
		t.Errorf("count what blanks say: %d, %v", n, err)
	}
	if n, err := c.DeleteWhere(ctx, "NOT label = ''"); n != 5 || err != nil {
		t.Errorf("all: %d, %v", n, err)
	}
	if n, err := c.CountWhere(ctx, "NOT label = 'x'"); n != 0 || err != nil {
		t.Errorf("%d left, %v", n, err)
	}
}

// Every filter sees the items of one state, whatever is being written.
func TestFiltersSeeOneState(t *testing.T) {
	d, c := dbkit.OpenCodes(t)
	const n = 50
	put := func(label string) error {
		b := d.NewBatch()
		for i := range n {
			b.Put(c, &db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i), 1}, Labels: []string{label}})
		}
		return b.Commit(ctx)
	}
	must(t, put("a"))
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				for where, ok := range map[string]func(int) bool{
					"label = 'a'":        func(n int) bool { return n == 0 || n == 50 },
					"label IN ('a','b')": func(n int) bool { return n == 50 },
					"NOT label = 'a'":    func(n int) bool { return n == 0 || n == 50 },
				} {
					r, err := dbkit.FirstWithin(c, db.Query{Code: []byte{0, 1}, Where: where, K: 100}, 16)
					if err != nil || !ok(r.Total) || len(r.Hits) != r.Total {
						t.Errorf("%s: %d, %v", where, r.Total, err)
						return
					}
				}
			}
		})
	}
	for i := range 40 {
		if err := put([]string{"b", "a"}[i%2]); err != nil {
			t.Error(err)
		}
	}
	close(done)
	readers.Wait()
}

// Evaluate ranks what matches only.
func TestEvaluateWhere(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	mustPutAndTrain(t, c)
	items := dbkit.AllItems(t, c)
	e := db.Evaluation{Queries: map[string][][]float32{}, Where: "year >= 2000 AND NOT label = 'nothing'"}
	matching := 0
	for i, it := range items {
		if i%3 == 0 {
			need(c.Merge(ctx, &db.Item{Key: it.Key, Fields: map[string]any{"year": 1990 + 20*(i%2)}}))(t)
			matching += i % 2
		}
		e.Queries["text"] = append(e.Queries["text"], it.Vectors["text"])
		e.Labels = append(e.Labels, it.Labels)
		e.Truth = append(e.Truth, it.Labels)
	}
	for range 2 { // with truth and without
		found := need(c.Evaluate(ctx, e))(t)
		if got := found[0].Hamming.Database; got != matching || matching == 0 {
			t.Errorf("%d items were ranked, %d match", got, matching)
		}
		e.Truth = nil
	}
}
