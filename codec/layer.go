package codec

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/RoaringBitmap/roaring/v2"
)

// A Layer is a change to a set of small numbers: the numbers it adds and those it
// deletes. Sets that many writes touch (live rows, presence of a modality) are stored
// as layers by container. So a write stores a few bytes, and a merge never rewrites
// more than one container.
//
//	byte     1
//	uvarint  length of the additions
//	         additions, a roaring bitmap in the portable format
//	         deletions, likewise, to the end; absent when there are none
//
// The algebra: applying a layer (A, D) to a set S gives (S \ D) u A, with A and D
// disjoint. Applying (A1, D1) and then (A2, D2) is applying
//
//	A = (A1 \ D2) u A2,  D = (D1 \ A2) u D2,
//
// because (((S \ D1) u A1) \ D2) u A2 = (S \ (D1 u D2)) u (A1 \ D2) u A2, and taking A2
// out of D changes nothing as A2 is added back. A and D are disjoint again. Once no
// older layer exists, S is empty and D may be dropped.
type Layer struct {
	Added, Deleted *roaring.Bitmap
}

const layerVersion = 1

// NewLayer returns the layer that changes nothing.
func NewLayer() Layer { return Layer{roaring.New(), roaring.New()} }

// Add puts x into the set.
func (l Layer) Add(x uint16) {
	l.Added.Add(uint32(x))
	l.Deleted.Remove(uint32(x))
}

// Delete takes x out of the set.
func (l Layer) Delete(x uint16) {
	l.Deleted.Add(uint32(x))
	l.Added.Remove(uint32(x))
}

// apply makes l the composition of l, applied first, and newer. Afterwards l may alias
// newer, which must not be written to any more.
func (l Layer) apply(newer Layer) {
	l.Added.AndNot(newer.Deleted)
	l.Added.Or(newer.Added)
	l.Deleted.AndNot(newer.Added)
	l.Deleted.Or(newer.Deleted)
}

// maxRunBytes bounds additions that are stored as runs: about 120 runs.
const maxRunBytes = 512

// compact returns the layer in the form that is best to store. A few runs of
// consecutive numbers are short. Many runs may still be shorter than a bitmap. But
// every reader checks them, in time quadratic in their number: milliseconds for two
// thousand. The result aliases l, which must not be used any more.
func (l Layer) compact() Layer {
	l.Added.RunOptimize()
	if l.Added.HasRunCompression() && l.Added.GetSerializedSizeInBytes() > maxRunBytes {
		var c Container
		c.Set(l.Added)
		l.Added = roaring.FromDense(c[:], true)
	}
	return l
}

// Append appends the encoded layer. If final, no older layer exists, and deletions are
// not recorded.
func (l Layer) Append(dst []byte, final bool) ([]byte, error) {
	added, err := l.Added.ToBytes()
	if err != nil {
		return nil, err
	}
	dst = append(dst, layerVersion)
	dst = binary.AppendUvarint(dst, uint64(len(added)))
	dst = append(dst, added...)
	if final || l.Deleted.IsEmpty() {
		return dst, nil
	}
	deleted, err := l.Deleted.ToBytes()
	if err != nil {
		return nil, err
	}
	return append(dst, deleted...), nil
}

// DecodeLayer reads a layer. It copies, so the caller may reuse b. The error wraps
// ErrCorrupt.
func DecodeLayer(b []byte) (Layer, error) {
	if len(b) == 0 || b[0] != layerVersion {
		return Layer{}, fmt.Errorf("%w: layer: does not start with version %d", ErrCorrupt, layerVersion)
	}
	size, n := binary.Uvarint(b[1:])
	if n <= 0 || size > uint64(len(b)-1-n) {
		return Layer{}, fmt.Errorf("%w: layer: bad length of the additions", ErrCorrupt)
	}
	b = b[1+n:]
	l := NewLayer()
	if err := decodeBitmap(l.Added, b[:size], math.MaxUint16); err != nil {
		return Layer{}, err
	}
	if b = b[size:]; len(b) > 0 {
		if err := decodeBitmap(l.Deleted, b, math.MaxUint16); err != nil {
			return Layer{}, err
		}
	}
	if l.Added.Intersects(l.Deleted) {
		return Layer{}, fmt.Errorf("%w: layer: adds and deletes the same number", ErrCorrupt)
	}
	return l, nil
}

// decodeBitmap reads a bitmap of numbers up to largest from all of b, which it copies.
// It follows roaring's contract for untrusted bytes: read, validate, use.
func decodeBitmap(into *roaring.Bitmap, b []byte, largest uint32) (err error) {
	defer func() {
		if r := recover(); r != nil { // not all readers of the library check bounds
			err = fmt.Errorf("%w: bitmap: %v", ErrCorrupt, r)
		}
	}()
	// FromUnsafeBytes would alias b, a Pebble value that is soon closed.
	n, err := into.FromBuffer(append([]byte(nil), b...))
	if err == nil && n != int64(len(b)) {
		err = fmt.Errorf("%d bytes of %d read", n, len(b))
	}
	if err == nil && into.IsEmpty() {
		return nil
	}
	if err == nil {
		err = into.Validate()
	}
	if err == nil && into.Maximum() > largest {
		err = fmt.Errorf("holds %d, more than %d", into.Maximum(), largest)
	}
	if err != nil {
		return fmt.Errorf("%w: bitmap: %w", ErrCorrupt, err)
	}
	return nil
}
