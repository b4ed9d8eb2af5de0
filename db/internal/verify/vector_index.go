package verify

import (
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/internal/cells"
	"github.com/fddhdb/fddhdb/model"
)

// An index of vectors has an entry for each row that has the modality, is below the end of the index, and is
// not stale. An entry follows from the vector, the seed and the centre of its cell. The check believes the
// entry's cell, because the nearest of several equally near centres is not certain.

// checkIndexes checks the indexes of vectors, with Deep also their entries against the vectors.
func (c *collectionVerifier) checkIndexes() {
	kinds := []byte{codec.KindCentre, codec.KindEntries, codec.KindStale}
	if c.IndexOnly {
		for _, kind := range append(kinds, codec.KindIndex) {
			c.checkAbsent(codec.CollectionKey(kind, c.ID), c.about("index of vectors"))
		}
		return
	}
	c.begin("indexes of vectors")
	var ids []uint32
	complete := c.walkPrefix(codec.CollectionKey(codec.KindIndex, c.ID), c.about("indexes of vectors"),
		func(key, value []byte) {
			id := codec.LastNumber(key)
			ids = append(ids, id)
			x, err := record.DecodeIndex(value, c.Descriptor, id)
			if err != nil {
				c.bad(fmt.Sprintf("index %d of vectors", id), key, "%s: its entries are not looked at",
					fault.Problem(err))
				c.lose(key)
				return
			}
			c.checkIndex(x, key)
		})
	if !complete {
		return
	}
	for _, kind := range kinds {
		strange := map[uint32]bool{}
		c.walkPrefix(codec.CollectionKey(kind, c.ID), c.about("indexes of vectors"), func(key, _ []byte) {
			if id := indexOfKey(key); !slices.Contains(ids, id) && !strange[id] {
				strange[id] = true
				c.bad(fmt.Sprintf("index %d of vectors", id), key, "there is no such index")
			}
		})
	}
}

// indexOfKey returns the number of the index in a key of one of its kinds.
func indexOfKey(key []byte) uint32 { return codec.LastNumber(key[:9]) }

// checkIndex looks at one index.
func (c *collectionVerifier) checkIndex(x *record.VectorIndex, key []byte) {
	name := func(what string, n uint32) string {
		return fmt.Sprintf("%s %d in index %d of vectors", what, n,
			x.ID)
	}
	if x.Covered > c.nextRow {
		c.bad(fmt.Sprintf("index %d of vectors", x.ID), key, "it covers %d rows, the next row is %d",
			x.Covered, c.nextRow)
	}
	centres, err := x.ReadCentres(c.snap, c.ID)
	if err != nil {
		c.bad(fmt.Sprintf("centres of index %d of vectors", x.ID),
			codec.NumberKey(codec.KindCentre, c.ID, x.ID), "%s: its entries are not looked at",
			fault.Problem(err))
		return
	}
	stale := roaring.New()
	staleKnown := c.walkPrefix(codec.NumberKey(codec.KindStale, c.ID, x.ID),
		c.about(fmt.Sprintf("stale rows of index %d of vectors", x.ID)), func(key, value []byte) {
			container := codec.LastNumber(key)
			if container > 1<<16-1 {
				c.bad(name("stale rows", container), key, "there is no such container")
				return
			}
			c.addRows(stale, name("stale rows", container), key, value, uint16(container))
		})
	if !stale.IsEmpty() && uint64(stale.Maximum()) >= x.Covered {
		c.bad(fmt.Sprintf("stale rows of index %d of vectors", x.ID),
			codec.NumberKey(codec.KindStale, c.ID, x.ID), "row %d is in it, the index covers %d",
			stale.Maximum(), x.Covered)
	}
	want := roaring.And(c.live, c.presence[x.Modality])
	want.RemoveRange(x.Covered, 1<<32)
	want.AndNot(stale)
	m := c.Modalities[x.Modality]
	var vector model.Vector
	var made cells.Entry
	y := make([]float32, centres.Size())
	complete := c.entries(codec.NumberKey(codec.KindEntries, c.ID, x.ID),
		c.about(fmt.Sprintf("entries of index %d of vectors", x.ID)), func(key []byte, row uint32, b []byte) {
			what := name("entry of row", row)
			e, err := cells.DecodeEntry(b, x.Dim)
			switch {
			case err != nil:
				c.bad(what, key, "%s", fault.Problem(err))
				return
			case centres.Of(e.Cell) == nil:
				c.bad(what, key, "in cell %d, which has no centre", e.Cell)
			case uint64(row) >= x.Covered:
				c.bad(what, key, "the index covers %d rows", x.Covered)
			}
			if !want.CheckedRemove(row) {
				if staleKnown && !stale.Contains(row) && uint64(row) < x.Covered &&
					!c.lost(codec.RowsKey(c.ID, codec.SetModality, uint32(x.Modality), uint16(row>>16))) {
					c.bad(what, key, "the row has no vector, and is not stale")
				}
				return
			}
			if !c.opt.Deep || centres.Of(e.Cell) == nil {
				return
			}
			stored, err := record.Get(c.snap, codec.FeatureKey(c.ID, row, uint16(x.Modality)))
			if err != nil || stored == nil || m.DecodeVector(&vector, stored) != nil {
				return // checkFeatures reports it
			}
			centres.Place(y, vector.Value)
			centres.Encode(&made, y, e.Cell)
			if !made.Equal(&e) {
				c.bad(what, key, "it is not that of the vector")
			}
		})
	if !complete || !staleKnown {
		return
	}
	for it := want.Iterator(); it.HasNext() && c.err == nil; {
		row := it.Next()
		c.missing(name("entry of row", row), codec.ChunkKey(codec.KindEntries, c.ID, x.ID,
			row/codec.BlockRows), "missing, and the row has a vector")
	}
}
