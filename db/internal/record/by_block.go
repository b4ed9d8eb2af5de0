package record

import (
	"maps"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
)

// ByBlock holds something for each of many numbers, such as rows, of which whole blocks
// may be missing. It takes memory for the blocks that something was put into, whatever
// their numbers: those may be damaged. The zero value is empty.
type ByBlock[T any] struct {
	blocks map[uint32]*[codec.BlockRows]T
	at     uint32 // the last one that was looked at
	block  *[codec.BlockRows]T
}

// Put returns the place of a number, making one.
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

// Get returns the place of a number, nil if its block is missing.
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

// Each calls f with all numbers of the blocks, ascending.
func (p *ByBlock[T]) Each(f func(n uint32, x *T)) {
	for _, block := range slices.Sorted(maps.Keys(p.blocks)) {
		for i := range p.blocks[block] {
			f(block*codec.BlockRows+uint32(i), &p.blocks[block][i])
		}
	}
}
