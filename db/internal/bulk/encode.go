package bulk

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/model"
)

// encode makes the codes of the items in all spaces, by the revisions and the names of labels of
// now. If a space has another revision when the load runs, load.run encodes again for that space;
// if a label has been renamed, for all spaces. A
// collection of given codes has nothing to encode. progress is not nil.
func (k *Items) encode(ctx context.Context, progress event.Progress) error {
	return k.Collection.Read(func(_ *state.View, cv *state.CollectionView) error {
		if cv.CodesOnly() {
			return nil
		}
		k.encodedBy = cv.Labels
		for _, sp := range cv.Spaces {
			if err := k.encodeFor(ctx, sp.Space, cv.Labels.Lookup, progress); err != nil {
				return err
			}
		}
		return nil
	})
}

// in returns the codes of the items in a space, nil if there are none. Another revision is
// another *spaces.Space.
func (k *Items) in(s *spaces.Space) *codeColumn {
	for _, column := range k.columns {
		if column.space == s {
			return column
		}
	}
	return nil
}

// dropColumns forgets the codes that have been made, and removes their files.
func (k *Items) dropColumns() {
	for _, column := range k.columns {
		if column.file != nil {
			column.file.remove()
		}
	}
	k.columns, k.encodedBy = nil, nil
}

// encodeFor makes the codes of the items in a space, block by block on all cores, and adds
// them as a column. labelIDs returns the numbers of labels; it is called from several
// goroutines. progress may be nil. It is called by one goroutine at a time; a goroutine that
// finds it busy does not wait, so that it need not hear of the last items. An error of an item
// is a fault.ItemError if its key is known.
func (k *Items) encodeFor(ctx context.Context, s *spaces.Space, labelIDs func(names []string) []uint32, progress event.Progress) error {
	x := k.extras()
	blocks := 0
	if x != nil {
		blocks = x.Blocks()
	}
	c := newCodeColumn(s, k.n, blocks)
	if k.fs == nil {
		c.projections = make([][]byte, blocks)
	} else {
		var err error
		if c.file, err = newTempFile(k.fs, k.fs.PathJoin(k.dir, fmt.Sprintf("%d.projections", len(k.columns)+1))); err != nil {
			return err
		}
		c.at = make([]int64, blocks)
	}
	// Append it at once: dropColumns removes the file after an error, too.
	k.columns = append(k.columns, c)
	var done atomic.Int64
	var reporting sync.Mutex
	bufs := sync.Pool{New: func() any { return &encodeBuffer{reader: x.NewReader()} }}
	return work.ParallelBy(ctx, work.All(), 1, blocks, func(block int) error {
		// A buffer for each goroutine at work, used again for its next block.
		b := bufs.Get().(*encodeBuffer)
		defer bufs.Put(b)
		from, items, err := b.reader.Read(block, RecordPart|VectorPart)
		if err != nil {
			return err
		}
		if cap(b.encs) < len(items) {
			b.encs = make([]spaces.Encoding, len(items))
		}
		b.encs = b.encs[:len(items)]
		err = s.EncodeAll(ctx, 1, b.encs,
			func(j int) ([]model.Vector, []uint32) {
				if items[j] == nil {
					return nil, nil
				}
				return items[j].Vectors, labelIDs(items[j].Labels)
			},
			func(j int, err error) error {
				return fault.OfItem(k.key(from+j), fmt.Errorf("fddhdb: encode: %w", err))
			})
		if err != nil {
			return err
		}
		if err := c.set(block, from, b.encs); err != nil {
			return err
		}
		if n := done.Add(int64(len(items))); progress != nil && reporting.TryLock() {
			progress("encoding", n, int64(k.n))
			reporting.Unlock()
		}
		return nil
	})
}

// An encodeBuffer is what one goroutine of encodeFor uses again for each of its blocks.
type encodeBuffer struct {
	reader Reader
	encs   []spaces.Encoding
}
