package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/shard"
)

const (
	demoK         = 10
	demoQueries   = 256
	demoSearchers = 2
	searchPause   = 2 * time.Millisecond
	writePause    = 10 * time.Millisecond
)

// A near is the key of an item and the distance between its code and a query.
type near struct {
	distance int
	key      string
}

func compareNear(a, b near) int {
	return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.key, b.key))
}

// A demoQuery is a code with its nearest imported items, in order: the first demoK, and all as near as the
// last.
type demoQuery struct {
	code  []byte
	first []near
}

// A written is an item that a writer has sent.
type written struct {
	key   string
	code  []byte
	sent  time.Time
	acked time.Time // zero: it has not been acknowledged
}

// A load writes and searches, and checks every answer against the times of the writes.
type load struct {
	coll    *cluster.Collection
	one     *db.Collection // a database in this process with the imported items
	queries []demoQuery
	log     *ledger

	mu      sync.Mutex
	written []*written // guarded by mu, with their fields
}

// demoItems returns items whose codes lie around some centres, so that queries have neighbours.
func demoItems(n int, r *rand.Rand) []*db.Item {
	centres := make([]uint64, max(1, n/100))
	for i := range centres {
		centres[i] = r.Uint64()
	}
	items := make([]*db.Item, n)
	for i := range items {
		code := centres[r.IntN(len(centres))]
		for range r.IntN(8) {
			code ^= 1 << r.IntN(64)
		}
		items[i] = &db.Item{Key: fmt.Sprintf("item-%07d", i), Code: binary.LittleEndian.AppendUint64(nil, code)}
	}
	return items
}

// changed returns a code with some bits flipped.
func changed(code []byte, flips int, r *rand.Rand) []byte {
	c := bytes.Clone(code)
	for range flips {
		c[r.IntN(len(c))] ^= 1 << r.IntN(8)
	}
	return c
}

// firstOf returns the first items of one database, including all as near as the last. A cluster orders these
// ties differently from one database, so it may return any of them.
func firstOf(ctx context.Context, one *db.Collection, code []byte) ([]near, error) {
	res, err := one.Search(ctx, db.Query{Code: code, K: demoK})
	if err != nil || len(res.Hits) == 0 {
		return nil, err
	}
	runs, err := one.SearchRadius(ctx, db.Query{Code: code}, res.Hits[len(res.Hits)-1].Distance)
	if err != nil {
		return nil, err
	}
	defer runs.Close()
	if res, err = runs.First(ctx, max(1, runs.Total())); err != nil {
		return nil, err
	}
	all := nearsOf(res)
	slices.SortFunc(all, compareNear)
	return all, nil
}

func nearsOf(r *db.Result) []near {
	all := make([]near, len(r.Hits))
	for i, h := range r.Hits {
		all[i] = near{h.Distance, h.Key}
	}
	return all
}

// prepare chooses the queries and asks the database for their answers.
func (l *load) prepare(ctx context.Context, items []*db.Item, r *rand.Rand) error {
	for range demoQueries {
		q := demoQuery{code: changed(items[r.IntN(len(items))].Code, 3, r)}
		var err error
		if q.first, err = firstOf(ctx, l.one, q.code); err != nil {
			return err
		}
		l.queries = append(l.queries, q)
	}
	return nil
}

// compare sends all queries to the cluster and counts the answers that differ from the database.
func (l *load) compare(ctx context.Context) (wrong int, err error) {
	for i := range l.queries {
		q := &l.queries[i]
		if q.first, err = firstOf(ctx, l.one, q.code); err != nil {
			return wrong, err
		}
		res, err := l.coll.Search(ctx, cluster.Query{Query: db.Query{Code: q.code, K: demoK}})
		if err != nil {
			return wrong, err
		}
		if why := nearest(nearsOf(&res.Result), q.first, nil); why != "" {
			l.log.note(why)
			wrong++
		}
	}
	return wrong, nil
}

// run searches and writes until the context ends.
func (l *load) run(ctx context.Context) {
	var all sync.WaitGroup
	for i := range demoSearchers {
		all.Go(func() { l.search(ctx, rand.New(rand.NewPCG(7, uint64(i)))) })
	}
	for s := range demoShards {
		all.Go(func() { l.write(ctx, s, rand.New(rand.NewPCG(8, uint64(s)))) })
	}
	all.Wait()
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// search makes one query after the other.
func (l *load) search(ctx context.Context, r *rand.Rand) {
	for pause(ctx, searchPause) {
		q := &l.queries[r.IntN(len(l.queries))]
		begin := time.Now()
		res, err := l.coll.Search(context.Background(), cluster.Query{Query: db.Query{Code: q.code, K: demoK}})
		end := time.Now()
		if err != nil {
			l.log.failed(err)
			continue
		}
		l.log.searched(begin, end)
		if why := l.judge(q, nearsOf(&res.Result), begin, end); why != "" {
			l.log.wrong(why)
		}
	}
}

// judge returns the error in an answer, or "". The imported items, and those acknowledged before the search
// began, must count. Items sent before it ended may count.
func (l *load) judge(q *demoQuery, got []near, begin, end time.Time) string {
	must, may := slices.Clone(q.first), map[near]bool{}
	l.mu.Lock()
	for _, w := range l.written {
		n := near{distance(w.code, q.code), w.key}
		switch {
		case !w.acked.IsZero() && w.acked.Before(begin):
			must = append(must, n)
		case w.sent.Before(end):
			may[n] = true
		}
	}
	l.mu.Unlock()
	slices.SortFunc(must, compareNear)
	return nearest(got, must, may)
}

// nearest returns the error in an answer, or "". The answer must have the nearest demoK of all, which is in
// order, and may have others. It may have any of the items as far away as the last.
func nearest(got, all []near, may map[near]bool) string {
	if !slices.IsSortedFunc(got, func(a, b near) int { return cmp.Compare(a.distance, b.distance) }) {
		return fmt.Sprintf("an answer is out of order: %v", got)
	}
	sure := slices.DeleteFunc(slices.Clone(got), func(n near) bool { return may[n] })
	slices.SortFunc(sure, compareNear)
	if want := min(len(all), demoK-(len(got)-len(sure))); len(slices.Compact(slices.Clone(sure))) != want {
		return fmt.Sprintf("an answer has %d items, want %d: %v", len(sure), want, sure)
	}
	for i, n := range sure {
		_, there := slices.BinarySearchFunc(all, n, compareNear)
		if n.distance != all[i].distance || !there {
			return fmt.Sprintf("an answer has %v, want %v or what is as near: %v", n, all[i], sure)
		}
	}
	return ""
}

// distance is the Hamming distance of codes of 64 bits.
func distance(a, b []byte) int {
	return bits.OnesCount64(binary.LittleEndian.Uint64(a) ^ binary.LittleEndian.Uint64(b))
}

// write stores new items of a shard one after the other, each near to some query.
func (l *load) write(ctx context.Context, of int, r *rand.Rand) {
	for i := 0; pause(ctx, writePause); {
		key := ""
		for ; key == "" || shard.Of(key, demoShards) != of; i++ {
			key = fmt.Sprintf("new-%d-%06d", of, i)
		}
		w := &written{key: key, code: changed(l.queries[r.IntN(len(l.queries))].code, 1+r.IntN(12), r), sent: time.Now()}
		l.mu.Lock()
		l.written = append(l.written, w)
		l.mu.Unlock()
		_, err := l.coll.Put(context.Background(), &db.Item{Key: w.key, Code: w.code})
		end := time.Now()
		if err != nil {
			l.log.failed(err)
			continue
		}
		l.mu.Lock()
		w.acked = end
		l.mu.Unlock()
		l.log.wrote(of, w.sent, end)
	}
}

// audit reads every written item, and adds the ones it finds to the database. lost counts acknowledged items
// that are missing or different.
func (l *load) audit(ctx context.Context, d *db.DB) (acknowledged, lost int, err error) {
	b := d.NewBatch()
	var mu sync.Mutex
	var all sync.WaitGroup
	at := make(chan *written)
	for range 8 {
		all.Go(func() {
			for w := range at {
				it, gerr := l.coll.Get(ctx, w.key)
				there := gerr == nil && bytes.Equal(it.Code, w.code)
				mu.Lock()
				switch {
				case there:
					gerr = b.Put(l.one, &db.Item{Key: w.key, Code: w.code})
				case !w.acked.IsZero() && (gerr == nil || errors.Is(gerr, db.ErrNotFound)):
					lost++
				}
				if !w.acked.IsZero() {
					acknowledged++
				}
				if gerr != nil && !errors.Is(gerr, db.ErrNotFound) {
					err = errors.Join(err, gerr)
				}
				mu.Unlock()
			}
		})
	}
	for _, w := range l.written {
		at <- w
	}
	close(at)
	all.Wait()
	if err != nil {
		return acknowledged, lost, err
	}
	return acknowledged, lost, b.Commit(ctx)
}
