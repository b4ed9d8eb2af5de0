package db_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/fit"
)

// An entry is an operation of a log: a change, on condition of what is stored if it is conditional.
type entry struct {
	collection  string
	kind        string // put, merge, delete or labels
	item        *db.Item
	conditional bool
	old         *db.Item // of a conditional one
}

// add adds the operation to a batch.
func (o *entry) add(b *db.Batch, c *db.Collection) {
	if o.conditional {
		b.Expect(c, o.item.Key, o.old)
	}
	switch o.kind {
	case "put":
		b.Put(c, o.item)
	case "merge":
		b.Merge(c, o.item)
	case "delete":
		b.Delete(c, o.item.Key)
	case "labels":
		b.RegisterLabels(c, o.item.Labels)
	}
}

// makeLog makes a log of operations for two collections, of which one brings codes. Keys, codes and
// labels come again, and so do codes that nothing has any more.
func makeLog(r *rand.Rand, n int) (log []*entry) {
	pool := dbkit.Pairs(400, synth.Config{Seed: r.Uint64(), Missing: .2, Classes: 9})
	last := map[string]*db.Item{}
	for len(log) < n {
		o := &entry{collection: "main", kind: "put", item: pool[r.IntN(len(pool))]}
		it := *o.item
		o.item = &it
		if r.IntN(6) == 0 {
			it.Labels = []string{fmt.Sprint("late", r.IntN(40))}
		}
		it.Key = fmt.Sprint("k", r.IntN(300))
		if r.IntN(3) > 0 {
			o.collection = "codes"
			it.Vectors, it.Code = nil, []byte{byte(r.IntN(9)), byte(r.IntN(3))}
			if r.IntN(3) == 0 { // one that goes with its item, and may come again
				it.Code[0] = byte(100 + r.IntN(100))
			}
		}
		if r.IntN(500) == 0 { // many new ones in a row, and some without a key of their own
			o.collection = "codes"
			for i := range 900 + r.IntN(2*bulkItems) {
				key := fmt.Sprint("n", len(log), "-", i)
				if r.IntN(5) == 0 {
					key = ""
				}
				log = append(log, &entry{collection: "codes", kind: "put",
					item: &db.Item{Key: key, Code: []byte{byte(r.IntN(50)), byte(i % 11)}}})
			}
			continue
		}
		at := o.collection + "/" + it.Key
		switch k := r.IntN(12); {
		case k < 2:
			o.kind = "delete"
		case k < 4:
			o.kind, it.Vectors, it.Fields = "merge", nil, map[string]any{"year": r.IntN(9)}
			if o.collection == "codes" && last[at] == nil {
				o.kind = "delete" // one that is not there needs a code
			}
		case k < 5:
			o.kind = "labels"
		case k < 7:
			o.conditional = true
			if r.IntN(3) > 0 {
				o.old = last[at]
			}
		}
		switch o.kind {
		case "put":
			last[at] = &it // if it is not refused
		case "delete", "merge":
			last[at] = nil
		}
		log = append(log, o)
	}
	return log
}

// replay applies a log from the operation that the mark says on, in batches of the sizes that next gives. A
// condition is decided where it stands in the log: the operation begins a batch, and if it is refused only
// the mark goes on.
func replay(t *testing.T, d *db.DB, log []*entry, next func() int) (refused []int) {
	t.Helper()
	collections := map[string]*db.Collection{}
	for _, name := range []string{"main", "codes"} {
		collections[name] = dbkit.MustCollection(t, d, name)
	}
	for at := 0; at < len(log); {
		b, from, n := d.NewBatch(), at, next()
		for at < len(log) && at-from < n && (at == from || !log[at].conditional) {
			log[at].add(b, collections[log[at].collection])
			if at++; log[from].conditional {
				break
			}
		}
		b.Mark("position", fmt.Append(nil, at))
		err := b.Commit(ctx)
		if log[from].conditional && errors.Is(err, db.ErrConflict) {
			refused = append(refused, from)
			putMarks(t, d, "position", fmt.Sprint(at))
			err = nil
		}
		must(t, err, "operations", from, "to", at)
	}
	return refused
}

// told is everything that an export of a database and its answers tell, in order.
func told(t *testing.T, d *db.DB) []byte {
	t.Helper()
	var b bytes.Buffer
	put := json.NewEncoder(&b).Encode
	for _, name := range []string{"main", "codes"} {
		c := dbkit.MustCollection(t, d, name)
		labels, err := c.Labels()
		if err == nil {
			err = put(labels)
		}
		for it, ierr := range c.Items(ctx, "") {
			if err = errors.Join(err, ierr); err != nil {
				break
			}
			err = put(it)
		}
		for coded, cerr := range c.Codes(ctx, "") {
			if err = errors.Join(err, cerr); err != nil {
				break
			}
			err = put(coded) // with its row
		}
		must(t, err)
		bytes := 2
		if name == "main" {
			bytes = 4
		}
		for _, code := range [][]byte{make([]byte, bytes), append(make([]byte, bytes-1), 1)} {
			// items of one distance by the age of their codes
			r, err := c.Search(ctx, db.Query{Code: code, K: 10_000})
			if err == nil {
				err = put(r)
			}
			must(t, err)
		}
	}
	return b.Bytes()
}

// What a log leaves follows from the sequence of its operations alone, however they are batched: rows,
// ids of labels, codes, and the order of answers.
func TestReplayByAnyBatching(t *testing.T) {
	dbkit.LongTest(t)
	r := seed.Rand(t, 1, 2)
	log := makeLog(r, 3000)
	base := t.TempDir() + "/base"
	d := dbkit.MustOpen(t, base, nil)
	schema := dbkit.PairsSchema
	c, err := d.CreateCollection(ctx, "main", schema)
	if err == nil {
		_, err = d.CreateCollection(ctx, "codes", db.Schema{Bits: 16, Fields: schema.Fields})
	}
	must(t, err)
	dbkit.PutAll(t, d, c, dbkit.Pairs(120, synth.Config{Seed: 3}))
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20, Seed: 1}})
	dbkit.MustClose(t, d)

	var want []byte
	var refusedOnes []int
	for round := range effort.Of(100, 5) {
		mem := vfs.NewMem()
		need(vfs.Clone(vfs.Default, mem, base, "db"))(t)
		d := dbkit.MustOpen(t, "db", &db.Options{FS: mem})
		next := func() int { return 1 }
		if round > 0 {
			most := 1 + r.IntN(1<<r.IntN(13))
			next = func() int { return 1 + r.IntN(most) }
		}
		refused := replay(t, d, log, next)
		got := told(t, d)
		if round == 0 {
			want, refusedOnes = got, refused
			failIf(t, len(refused) < 20, "%d conditions were refused", len(refused))
		}
		failIf(t, fmt.Sprint(refused) != fmt.Sprint(refusedOnes),
			"batching %d: refused are %v, one by one %v", round, refused, refusedOnes)
		if !bytes.Equal(got, want) {
			i := 0
			for i < min(len(got), len(want)) && got[i] == want[i] {
				i++
			}
			t.Fatalf("batching %d: %d bytes, and one by one %d; from byte %d on they differ:\n%.300s\n%.300s",
				round, len(got), len(want), i, got[max(0, i-100):], want[max(0, i-100):])
		}
		wantMarks(t, fmt.Sprint("batching ", round), d, map[string]string{"position": fmt.Sprint(len(log))})
		if round%25 == 4 {
			dbkit.CheckSound(t, d, "replayed")
		}
		dbkit.MustClose(t, d)
	}
}
