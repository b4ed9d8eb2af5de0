package record

import (
	"maps"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
)

// ByBlock is a sparse array: it holds a T for each number in the blocks of codec.BlockRows
// numbers that something was put into. Verification and repair use it for rows and code
// numbers that a store names. Such a number may be damaged, so memory goes by how many blocks
// are in use, and not by the largest number. The zero value is empty. It is for one goroutine,
// even to read.
type ByBlock[T any] struct {
	blocks map[uint32]*[codec.BlockRows]T // by number / codec.BlockRows

	// The block that Get or Put has found last: numbers mostly come in order.
	at    uint32
	block *[codec.BlockRows]T // nil: none yet
}

// Put returns the place of a number and makes its block, of zero values, if there is none. The
// pointer stays valid, as blocks never move.
func (p *ByBlock[T]) Put(n uint32) *T {
	if x := p.Get(n); x != nil {
		return x
	}
	if p.blocks == nil {
		p.blocks = map[uint32]*[codec.BlockRows]T{}
	}
	p.at, p.block = n/codec.BlockRows, new([codec.BlockRows]T)
	p.blocks[p.at] = p.block
	return &p.block[n%codec.BlockRows]
}

// Get returns the place of a number, nil if its block is missing. A place in a block that exists
// may hold the zero value: T itself has to say whether something was put there.
func (p *ByBlock[T]) Get(n uint32) *T {
	if p.block == nil || p.at != n/codec.BlockRows {
		b := p.blocks[n/codec.BlockRows]
		if b == nil {
			return nil
		}
		p.at, p.block = n/codec.BlockRows, b
	}
	return &p.block[n%codec.BlockRows]
}

// Each calls f with every number of the blocks that exist, ascending, also where nothing but the
// zero value is. f may change *x.
func (p *ByBlock[T]) Each(f func(n uint32, x *T)) {
	for _, block := range slices.Sorted(maps.Keys(p.blocks)) {
		for i := range p.blocks[block] {
			f(block*codec.BlockRows+uint32(i), &p.blocks[block][i])
		}
	}
}
