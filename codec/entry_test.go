package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"
)

func TestRowCodeRoundTrip(t *testing.T) {
	for _, r := range []RowCode{{}, {1, ProvenanceLabels, 2},
		{math.MaxUint32, ProvenanceModality + 7, math.MaxUint32}} {
		got, err := DecodeRowCode(r.Append(nil))
		if err != nil || got != r {
			t.Errorf("%+v became %+v, %v", r, got, err)
		}
	}
	if _, err := DecodeRowCode(make([]byte, RowCodeBytes-1)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("short entry: %v", err)
	}
}

// A direction has the proportions of the projection, and before it the inverse of its length.
func TestDirection(t *testing.T) {
	entry := AppendProjection([]byte{9}, []float64{-2, 1, 0, .5})[1:]
	if len(entry) != ProjectionBytes(4) {
		t.Fatalf("%d bytes", len(entry))
	}
	if got, want := Direction(entry), []byte{0x81, 64, 0, 32}; !bytes.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
	if got := math.Float32frombits(binary.LittleEndian.Uint32(entry)); math.Abs(
		float64(got)-1/math.Sqrt(127*127+64*64+32*32)) > 1e-9 {
		t.Errorf("inverse length %g", got)
	}
	for _, z := range []float64{0, math.NaN(), math.Inf(1)} {
		if entry := AppendProjection(nil, []float64{z, 0}); !bytes.Equal(entry,
			make([]byte, ProjectionBytes(2))) {
			t.Errorf("projection of %g: %x", z, entry)
		}
	}
}
