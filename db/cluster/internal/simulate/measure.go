package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/fddhdb/fddhdb/db"
)

// searches is the number of measured searches.
const searches = 3000

// measure returns the durations, in seconds, of searches in a shard of random codes of 64 bits. Each query is
// a stored code with one bit flipped.
func measure(codes, k int) (service []float64, err error) {
	dir, err := os.MkdirTemp("", "simulate-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	d, err := db.Open(dir, &db.Options{NoSync: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	ctx := context.Background()
	c, err := d.CreateCollection(ctx, "codes", db.Schema{Bits: 64})
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(7, 7))
	code := func(n int) []byte { // of the n-th item
		r := rand.New(rand.NewPCG(uint64(n), 7))
		b := make([]byte, 8)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	for n := 0; n < codes; {
		b := d.NewBatch()
		for ; n < codes && b.Len() < 1_000_000; n++ {
			b.Put(c, &db.Item{Key: fmt.Sprint("key-", n), Code: code(n)})
		}
		if err := b.Commit(ctx); err != nil {
			return nil, err
		}
	}
	if err := d.WaitForIndex(ctx); err != nil {
		return nil, err
	}
	for i := range searches + 200 {
		b := code(r.IntN(codes))
		b[r.IntN(8)] ^= 1 << r.IntN(8)
		begin := time.Now()
		if _, err := c.Search(ctx, db.Query{Code: b, K: k}); err != nil {
			return nil, err
		}
		if i >= 200 { // the first ones warm up
			service = append(service, time.Since(begin).Seconds())
		}
	}
	return service, nil
}
