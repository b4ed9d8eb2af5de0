package codec

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"
)

// FuzzKey: bytes in the form of a key equal the key made of their parts.
func FuzzKey(f *testing.F) {
	for _, key := range [][]byte{
		DatabaseKey(RecordSequence), NameKey("main"), CollectionKey(KindCounters, 1), ItemKey(1, "k"),
		NumberKey(KindItem, 1, 2),
		FeatureKey(1, 2, 3), ChunkKey(KindModel, 1, 2, 3), RevisionKey(1, 2, 3, 4),
		OnlineRowsKey(1, 2, SetRecode, 3),
		RetractionKey(1, 2, 1<<40), LessonsKey(1, 2, 700), NumberKey(KindIndex, 1, 2),
		ChunkKey(KindEntries, 1, 2, 3), SpaceBlockKey(KindCodes, 1, 2, 4), CodeRowsKey(1, 2, 4, 5),
		SubstringKey(1, 2, 4, 5), RowsKey(1, SetLabel, 7, 8), FieldRowsKey(1, 2, 3, "value"), {}, {0xff},
		FieldWordsKey(1, 2, 3, "term"),
		{KindFieldRows, 0, 0, 0, 1},
	} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key []byte) {
		if err := CheckKey(key); err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		kind := key[0]
		collection := func() uint32 { return LastNumber(key[:5]) }
		second := func() uint32 { return LastNumber(key[:9]) }
		var again []byte
		switch kind {
		case KindDatabase:
			again = DatabaseKey(key[1])
		case KindName:
			again = NameKey(string(key[1:]))
		case KindMark:
			again = MarkKey(string(key[1:]))
		case KindCollection, KindCounters:
			again = CollectionKey(kind, collection())
		case KindKey:
			again = ItemKey(collection(), string(key[5:]))
		case KindLabel, KindItem, KindRowKeys, KindSpace, KindIndex:
			again = NumberKey(kind, collection(), LastNumber(key))
		case KindFeatures:
			row, modality := FeatureKeyParts(key)
			again = FeatureKey(collection(), row, modality)
		case KindModel, KindStatistics, KindLessons, KindCentre, KindEntries, KindStale:
			again = ChunkKey(kind, collection(), second(), LastNumber(key))
		case KindRevision:
			revision, chunk := RevisionKeyParts(key)
			again = RevisionKey(collection(), second(), revision, chunk)
		case KindOnlineRows:
			set, container := OnlineRowsKeyParts(key)
			again = OnlineRowsKey(collection(), second(), set, container)
		case KindRetraction:
			again = RetractionKey(collection(), second(), RetractionNumber(key))
		case KindRowCodes, KindCodes, KindProjection:
			again = SpaceBlockKey(kind, collection(), second(), LastNumber(key))
		case KindCodeRows:
			code, container := CodeRowsKeyParts(key)
			again = CodeRowsKey(collection(), second(), code, container)
		case KindSubstring:
			table, substring := SubstringKeyParts(key)
			again = SubstringKey(collection(), second(), table, substring)
		case KindRows:
			set, id, container := RowsKeyParts(key)
			again = RowsKey(collection(), set, id, container)
		case KindFieldRows:
			field, container, value := FieldRowsKeyParts(key)
			again = FieldRowsKey(collection(), field, container, string(value))
		case KindFieldWords:
			field, container, term := FieldRowsKeyParts(key)
			again = FieldWordsKey(collection(), field, container, string(term))
		default:
			t.Fatalf("kind %x is a key, and nobody knows it", kind)
		}
		if !bytes.Equal(again, key) {
			t.Fatalf("%x became %x", key, again)
		}
		if end := PrefixEnd(key); end != nil &&
			(bytes.Compare(end, append(slices.Clip(key), 0xff, 0xff)) <= 0 || bytes.HasPrefix(end, key)) {
			t.Fatalf("keys with the prefix %x end at %x", key, end)
		}
	})
}

// FuzzEntries: entries of blocks, dense features and lessons are refused with
// ErrCorrupt, or they are the only encoding of their contents.
func FuzzEntries(f *testing.F) {
	f.Add(uint16(1), RowCode{7, ProvenanceFused, 3}.Append(nil))
	f.Add(uint16(2), AppendCodeEntry(nil, Code{0x1234}, 16, ManyRows))
	f.Add(uint16(2), AppendFeatures(nil, []float32{1, -2.5}))
	f.Add(uint16(3), AppendFeatures(nil, []float32{1, float32(math.Inf(1)), 0}))
	f.Add(uint16(2), Lesson{3, Taught{Codes: []byte{1, 2, 3, 4}}}.Append(nil))
	f.Add(uint16(2), Lesson{3, Taught{Labels: []uint32{0, 1, 300}}}.Append(nil))
	f.Add(uint16(1), AppendProjection(nil, []float64{1, -.5, .25, 0, 0, 2, 0, 1e-9}))
	f.Fuzz(func(t *testing.T, size uint16, b []byte) {
		size = size%(MaxBits/8) + 1
		q := 8 * int(size)
		refused := func(err error) bool {
			if err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return err != nil
		}
		if r, err := DecodeRowCode(b); !refused(err) && !bytes.Equal(r.Append(nil), b) {
			t.Fatalf("%x became %x", b, r.Append(nil))
		}
		code := NewCode(q)
		if row, err := DecodeCodeEntry(code, q, b); !refused(err) &&
			!bytes.Equal(AppendCodeEntry(nil, code, q, row), b) {
			t.Fatalf("code %x became %x", b, AppendCodeEntry(nil, code, q, row))
		}
		x := make([]float32, size)
		if err := DecodeFeatures(x, b); !refused(err) {
			if !bytes.Equal(AppendFeatures(nil, x), b) {
				t.Fatalf("features %x became %x", b, AppendFeatures(nil, x))
			}
			if slices.ContainsFunc(x, func(v float32) bool { return v-v != 0 }) {
				t.Fatalf("features %v", x)
			}
		}
		if l, err := DecodeLesson(q, b); !refused(err) &&
			(!bytes.Equal(l.Append(nil), b) || len(l.Codes)%Bytes(q) != 0) {
			t.Fatalf("lesson %x became %x", b, l.Append(nil))
		}
	})
}
