package dbtest

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand/v2"

	"github.com/fddhdb/fddhdb/db"
)

// Codes describes items of a codes-only collection. Their codes gather around centres,
// like perceptual hashes of pictures and of their copies. Zero fields mean the defaults
// given here. Equal Codes give equal items, on every machine. It is safe for concurrent
// use.
type Codes struct {
	Bits    int     // a multiple of 8 from 8 to 4096; default 64
	Centres int     // default 100
	Flip    float64 // probability that a bit of an item differs from its centre; default 0.05
	Seed    uint64
}

// Schema returns the schema of a collection for the items: the bits, and an indexed
// field "number" with the number of the item.
func (c Codes) Schema() db.Schema {
	return db.Schema{Bits: cmp.Or(c.Bits, 64), Fields: []db.Field{{Name: "number", Type: db.Int, Indexed: true}}}
}

// Items yields the items from to to-1: item i with the key "item i" and the label of
// its centre, "centre 0" and so on. Item i does not depend on from and to. It makes one
// item at a time, and none before from.
func (c Codes) Items(from, to int) iter.Seq[*db.Item] {
	return func(yield func(*db.Item) bool) {
		for i := from; i < to; i++ {
			if !yield(c.item(i)) {
				return
			}
		}
	}
}

func (c Codes) item(i int) *db.Item {
	own := rand.New(rand.NewPCG(c.Seed, uint64(i)))
	centre := own.Uint64N(uint64(cmp.Or(c.Centres, 100)))
	bits := rand.New(rand.NewPCG(^c.Seed, centre))
	code := make([]byte, cmp.Or(c.Bits, 64)/8)
	for j := range code {
		code[j] = byte(bits.Uint32())
		for b := range 8 {
			if own.Float64() < cmp.Or(c.Flip, .05) {
				code[j] ^= 1 << b
			}
		}
	}
	return &db.Item{
		Key: fmt.Sprint("item ", i), Code: code, Labels: []string{fmt.Sprint("centre ", centre)},
		Fields: map[string]any{"number": int64(i)}}
}
