package codec

import (
	"bytes"
	"errors"
	"testing"
)

func TestKeysHaveTheirForm(t *testing.T) {
	keys := [][]byte{
		DatabaseKey(RecordFormat), NameKey("main"), CollectionKey(KindCollection, 1),
		NumberKey(KindLabel, 1, 2), CollectionKey(KindCounters, 1), ItemKey(1, "k"),
		NumberKey(KindItem, 1, 2), FeatureKey(1, 2, 3), NumberKey(KindRowKeys, 1, 2),
		NumberKey(KindSpace, 1, 2), ChunkKey(KindModel, 1, 2, 3), ChunkKey(KindStatistics, 1, 2, 3),
		SpaceBlockKey(KindRowCodes, 1, 2, 0, 4), SpaceBlockKey(KindCodes, 1, 2, 0, 4),
		SpaceBlockKey(KindProjection, 1, 2, 0, 4), RowsKey(1, SetModality, 2, 3),
	}
	for _, k := range keys {
		if err := CheckKey(k); err != nil {
			t.Errorf("%x: %v", k, err)
		}
		if k[0] != KindName && k[0] != KindKey {
			if err := CheckKey(append(bytes.Clone(k), 0)); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%x with a byte more: %v", k, err)
			}
		}
		if err := CheckKey(k[:1]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%x cut to its kind: %v", k, err)
		}
	}
	for _, k := range [][]byte{nil, {0x99, 0, 0, 0, 1}} {
		if err := CheckKey(k); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%x: %v", k, err)
		}
	}
}

func TestKeyPartsAndOrder(t *testing.T) {
	if row, m := FeatureKeyParts(FeatureKey(1, 70000, 3)); row != 70000 || m != 3 {
		t.Errorf("feature key: row %d, modality %d", row, m)
	}
	if set, id, c := RowsKeyParts(RowsKey(1, SetModality, 70000, 513)); set != SetModality || id != 70000 || c != 513 {
		t.Errorf("rows key: set %d, id %d, container %d", set, id, c)
	}
	if n := LastNumber(SpaceBlockKey(KindCodes, 1, 2, 0, 70000)); n != 70000 {
		t.Errorf("block %d", n)
	}
	if bytes.Compare(FeatureKey(1, 255, 9), FeatureKey(1, 256, 0)) >= 0 {
		t.Error("features are not in row order")
	}
}

func TestPrefixEnd(t *testing.T) {
	for _, c := range []struct{ prefix, end []byte }{
		{[]byte{1}, []byte{2}}, {[]byte{1, 0xff}, []byte{2}}, {[]byte{1, 2, 0xff, 0xff}, []byte{1, 3}},
		{[]byte{0xff}, nil}, {nil, nil},
	} {
		if got := PrefixEnd(c.prefix); !bytes.Equal(got, c.end) || (got == nil) != (c.end == nil) {
			t.Errorf("PrefixEnd(%x) = %x, want %x", c.prefix, got, c.end)
		}
	}
}
