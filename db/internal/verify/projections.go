package verify

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
)

// A projection is stored for each row with features that the model knows, unless it is zero, and
// whatever gives the row its code: it puts the items that share a code in order.

// checkProjections checks the projections of rows: their form, that the row has features, and
// that a row has one if its code was made of features. The checks of codes have run before.
func (s *spaceVerifier) checkProjections() {
	if s.CodesOnly() {
		return // strangers reports keys of that kind
	}
	s.begin("projections")
	have := roaring.New()
	s.entries(s.prefix(codec.KindProjection), s.about("projections"), func(key []byte, row uint32, entry []byte) {
		what := fmt.Sprintf("projection of row %d", row)
		have.Add(row)
		err := checkProjection(entry, s.Bits())
		switch {
		case err != nil:
			s.bad(what, key, "%s", fault.Problem(err))
		case s.dead(row):
			s.bad(what, key, "the row has no item")
		case s.Trained != nil && !s.learnsFromRow(row):
			s.bad(what, key, "the row has no features that the model knows")
		}
	})
	for row := range s.strayRows(s.unlabelled, have) {
		s.missing(fmt.Sprintf("projection of row %d", row), s.projectionKey(row), "missing, and the code of the row was made of features")
	}
}

// projectionKey returns the key of the block that has the projection of a row.
func (s *spaceVerifier) projectionKey(row uint32) []byte {
	return codec.SpaceBlockKey(codec.KindProjection, s.ID(), s.spaceID(), row/codec.BlockRows)
}

// checkProjection checks that an entry is one that codec.AppendProjection makes of q numbers:
// the inverse of the length of the vector, as a float32, and numbers of 8 bits, scaled so that
// the largest is 127 or -127.
func checkProjection(entry []byte, q int) error {
	if len(entry) != codec.ProjectionBytes(q) {
		return fmt.Errorf("%d bytes, not %d", len(entry), codec.ProjectionBytes(q))
	}
	sum, largest := 0, 0
	for _, b := range entry[4:] {
		v := int(int8(b))
		sum += v * v
		largest = max(largest, v, -v)
	}
	if largest != 127 {
		return fmt.Errorf("the largest number is %d, not 127", largest)
	}
	if inverse := float32(1 / math.Sqrt(float64(sum))); math.Float32bits(inverse) != binary.LittleEndian.Uint32(entry) {
		return errors.New("its length is not that of its numbers")
	}
	return nil
}
