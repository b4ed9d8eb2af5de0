package codec

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestKeysHaveTheirForm(t *testing.T) {
	keys := [][]byte{
		DatabaseKey(RecordUUID), NameKey("main"), MarkKey("m"), CollectionKey(KindCollection, 1),
		NumberKey(KindLabel, 1, 2), CollectionKey(KindCounters, 1), ItemKey(1, "k"),
		NumberKey(KindItem, 1, 2), FeatureKey(1, 2, 3), NumberKey(KindRowKeys, 1, 2),
		NumberKey(KindSpace, 1, 2), ChunkKey(KindModel, 1, 2, 3), ChunkKey(KindStatistics, 1, 2, 3),
		SpaceBlockKey(KindRowCodes, 1, 2, 4), SpaceBlockKey(KindCodes, 1, 2, 4),
		CodeRowsKey(1, 2, 4, 5), SubstringKey(1, 2, 4, 5),
		SpaceBlockKey(KindProjection, 1, 2, 4), RowsKey(1, SetModality, 2, 3),
		FieldRowsKey(1, 2, 3, ""), FieldRowsKey(1, 2, 3, "value"),
		FieldWordsKey(1, 2, 3, ""), FieldWordsKey(1, 2, 3, "term"),
		RevisionKey(1, 2, 3, 4), OnlineRowsKey(1, 2, SetPending, 3), RetractionKey(1, 2, 3),
		LessonsKey(1, 2, 3),
		NumberKey(KindIndex, 1, 2), ChunkKey(KindCentre, 1, 2, 3), ChunkKey(KindEntries, 1, 2, 3),
		ChunkKey(KindStale, 1, 2, 3),
	}
	tried := map[byte]bool{}
	for _, k := range keys {
		tried[k[0]] = true
		if err := CheckKey(k); err != nil {
			t.Errorf("%x: %v", k, err)
		}
		if k[0] != KindName && k[0] != KindMark && k[0] != KindKey && k[0] != KindFieldRows &&
			k[0] != KindFieldWords {
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
	for kind := range 256 {
		if known(byte(kind)) && !tried[byte(kind)] {
			t.Errorf("no key of kind %02x is tried", kind)
		}
	}
}

// known reports whether there are keys of a kind.
func known(kind byte) bool {
	err := CheckKey([]byte{kind})
	return err == nil || !strings.Contains(err.Error(), "unknown kind")
}

func TestKeyPartsAndOrder(t *testing.T) {
	if row, m := FeatureKeyParts(FeatureKey(1, 70000, 3)); row != 70000 || m != 3 {
		t.Errorf("feature key: row %d, modality %d", row, m)
	}
	if set, id, c := RowsKeyParts(RowsKey(1, SetModality, 70000, 513)); set != SetModality || id != 70000 ||
		c != 513 {
		t.Errorf("rows key: set %d, id %d, container %d", set, id, c)
	}
	if f, c, v := FieldRowsKeyParts(FieldRowsKey(1, 300, 513, "value")); f != 300 || c != 513 ||
		string(v) != "value" {
		t.Errorf("field rows key: field %d, container %d, value %q", f, c, v)
	}
	if bytes.Compare(FieldRowsKey(1, 2, 3, "b"), FieldRowsKey(1, 2, 3, "a\xff")) <= 0 ||
		bytes.Compare(FieldRowsKey(1, 2, 4, ""), FieldRowsKey(1, 2, 3, "z")) <= 0 {
		t.Error("values of a field are not in order")
	}
	if code, c := CodeRowsKeyParts(CodeRowsKey(1, 2, 70000, 513)); code != 70000 || c != 513 {
		t.Errorf("code rows key: code %d, container %d", code, c)
	}
	if !bytes.HasPrefix(CodeRowsKey(1, 2, 70000, 513), CodeRowsPrefix(1, 2, 70000)) {
		t.Error("the key of a code's rows lacks the prefix")
	}
	if table, s := SubstringKeyParts(SubstringKey(1, 2, 513, 70000)); table != 513 || s != 70000 {
		t.Errorf("substring key: table %d, substring %d", table, s)
	}
	if n := LastNumber(SpaceBlockKey(KindCodes, 1, 2, 70000)); n != 70000 {
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
