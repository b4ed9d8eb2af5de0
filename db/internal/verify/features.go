package verify

import (
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/model"
)

// Features are the bulk of most databases, so they are read once, and decoded into the same memory.
// Whether they are the features of this very item only a deep verification can tell, by its code.

// checkFeatures decodes all feature records, and compares the rows that have one with the set
// of each modality, both ways.
func (c *collectionVerifier) checkFeatures() {
	c.begin("features")
	if c.IndexOnly {
		c.checkAbsent(codec.CollectionKey(codec.KindFeatures, c.ID), c.about("features"))
		return
	}
	buffers := make([]model.Vector, len(c.Modalities))
	left := cloneBitmaps(c.presence)
	c.walkPrefix(codec.CollectionKey(codec.KindFeatures, c.ID), c.about("features"), func(key, value []byte) {
		row, t := codec.FeatureKeyParts(key)
		if int(t) >= len(c.Modalities) {
			c.bad(fmt.Sprintf("features %d of row %d", t, row), key, "there is no modality %d", t)
			return
		}
		what := c.featuresName(row, int(t))
		if !left[t].CheckedRemove(row) {
			c.missing(what, codec.RowsKey(c.ID, codec.SetModality, uint32(t), uint16(row>>16)), "the row is not in the set of the modality")
		}
		if err := c.Modalities[t].DecodeVector(&buffers[t], value); err != nil {
			c.bad(what, key, "%s", fault.Problem(err))
			c.lose(key)
		}
	})
	for t, rows := range left {
		for it := rows.Iterator(); it.HasNext() && c.err == nil; {
			row := it.Next()
			c.missing(c.featuresName(row, t), codec.FeatureKey(c.ID, row, uint16(t)), "missing, and the row is in the set of the modality")
		}
	}
}

// featuresName names the features of a row in findings.
func (c *collectionVerifier) featuresName(row uint32, t int) string {
	return fmt.Sprintf("features %q of row %d", c.Modalities[t].Name, row)
}

// cloneBitmaps returns copies that can be changed.
func cloneBitmaps(sets []*roaring.Bitmap) []*roaring.Bitmap {
	out := make([]*roaring.Bitmap, len(sets))
	for i, s := range sets {
		out[i] = s.Clone()
	}
	return out
}
