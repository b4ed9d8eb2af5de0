package codec

import (
	"encoding/binary"
	"fmt"
)

// Keys are big-endian so that their byte order is the order in which things
// are read: a kind byte, the collection (u32), then what the kind needs.
//
//	kind  rest of the key                              value
//	00    record (u8)                                  format; commit sequence; next collection id
//	01    name (bytes)                                 collection id (u32)
//	02    collection                                   descriptor of the collection (JSON)
//	03    collection, label (u32)                      name of the label
//	04    collection                                   counters
//	10    collection, key (bytes)                      row (u32)
//	11    collection, row (u32)                        item record: labels, fields, payload
//	12    collection, row, modality (u16)              feature record
//	13    collection, row >> 8 (u32)                   block: row -> key
//	20    collection, space                            descriptor of the space (JSON)
//	21    collection, space, chunk (u32)               model, in chunks
//	22    collection, space, chunk (u32)               statistics A_t and B_t, in chunks
//	30    collection, space, view (u8), row >> 8       block: row -> code number, provenance, revision
//	31    collection, space, view, code number >> 8    block: code number -> code
//	34    collection, space, view, row >> 8            block: row -> fused projection
//	50    collection, set (u8), id (u32), row >> 16    layer: rows of the set, low 16 bits
//
// The kinds of blocks and layers are written with Merge, see [Merger].
const (
	KindDatabase   = 0x00
	KindName       = 0x01
	KindCollection = 0x02
	KindLabel      = 0x03
	KindCounters   = 0x04
	KindKey        = 0x10
	KindItem       = 0x11
	KindFeatures   = 0x12
	KindRowKeys    = 0x13
	KindSpace      = 0x20
	KindModel      = 0x21
	KindStatistics = 0x22
	KindRowCodes   = 0x30
	KindCodes      = 0x31
	KindProjection = 0x34
	KindRows       = 0x50
)

// Records of KindDatabase.
const (
	RecordFormat   = 0x00
	RecordSequence = 0x01
	RecordNextID   = 0x02
)

// Sets of KindRows.
const (
	SetLive     = 0x00 // every row that has an item; id 0
	SetModality = 0x01 // rows that have modality id
)

// BlockRows is the number of rows, or code numbers, of a packed block.
const BlockRows = 256

// DatabaseKey returns the key of one record about the whole database.
func DatabaseKey(record byte) []byte { return []byte{KindDatabase, record} }

// NameKey returns the key under which the id of a named collection stands.
func NameKey(name string) []byte { return append([]byte{KindName}, name...) }

// CollectionKey returns the key of a kind that a collection has once, and the
// prefix of the kinds that it has often.
func CollectionKey(kind byte, collection uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{kind}, collection)
}

// ItemKey returns the key of KindKey for an item's key.
func ItemKey(collection uint32, key string) []byte {
	return append(CollectionKey(KindKey, collection), key...)
}

// NumberKey returns the key of the kinds that end in one u32 after the
// collection: a label, a space, a row or a block.
func NumberKey(kind byte, collection, n uint32) []byte {
	return binary.BigEndian.AppendUint32(CollectionKey(kind, collection), n)
}

// FeatureKey returns the key of the features of one modality of a row.
func FeatureKey(collection, row uint32, modality uint16) []byte {
	return binary.BigEndian.AppendUint16(NumberKey(KindFeatures, collection, row), modality)
}

// ChunkKey returns the key of one chunk of a space's model or statistics.
func ChunkKey(kind byte, collection, space, chunk uint32) []byte {
	return binary.BigEndian.AppendUint32(NumberKey(kind, collection, space), chunk)
}

// SpaceBlockKey returns the key of a block of a space: KindRowCodes, KindCodes
// or KindProjection.
func SpaceBlockKey(kind byte, collection, space uint32, view byte, block uint32) []byte {
	return binary.BigEndian.AppendUint32(append(NumberKey(kind, collection, space), view), block)
}

// RowsKey returns the key of the layer that holds the rows container<<16 to
// container<<16 + 65535 of a set.
func RowsKey(collection uint32, set byte, id uint32, container uint16) []byte {
	k := append(CollectionKey(KindRows, collection), set)
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(k, id), container)
}

// PrefixEnd returns the first key after all those that start with prefix, nil
// if there is none.
func PrefixEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		end[i]++
		if end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// keyLengths holds the length of the keys of a kind where it is fixed.
var keyLengths = map[byte]int{
	KindDatabase: 2, KindCollection: 5, KindLabel: 9, KindCounters: 5, KindItem: 9,
	KindFeatures: 11, KindRowKeys: 9, KindSpace: 9, KindModel: 13, KindStatistics: 13,
	KindRowCodes: 14, KindCodes: 14, KindProjection: 14, KindRows: 12,
}

// CheckKey reports whether bytes have the form of a key.
func CheckKey(key []byte) error {
	if len(key) == 0 {
		return fmt.Errorf("%w: empty key", ErrCorrupt)
	}
	switch kind := key[0]; kind {
	case KindName:
		if len(key) < 2 {
			return fmt.Errorf("%w: key %x names no collection", ErrCorrupt, key)
		}
	case KindKey:
		if len(key) < 6 {
			return fmt.Errorf("%w: key %x names no item", ErrCorrupt, key)
		}
	default:
		want, ok := keyLengths[kind]
		if !ok {
			return fmt.Errorf("%w: key %x has an unknown kind", ErrCorrupt, key)
		}
		if len(key) != want {
			return fmt.Errorf("%w: key %x has %d bytes, its kind has %d", ErrCorrupt, key, len(key), want)
		}
	}
	return nil
}

// LastNumber returns the u32 at the end of a key of NumberKey, ChunkKey or
// SpaceBlockKey; the key has passed CheckKey.
func LastNumber(key []byte) uint32 { return binary.BigEndian.Uint32(key[len(key)-4:]) }

// FeatureKeyParts returns row and modality of a key of KindFeatures that has
// passed CheckKey.
func FeatureKeyParts(key []byte) (row uint32, modality uint16) {
	return binary.BigEndian.Uint32(key[5:]), binary.BigEndian.Uint16(key[9:])
}

// RowsKeyParts returns the parts of a key of KindRows that has passed CheckKey.
func RowsKeyParts(key []byte) (set byte, id uint32, container uint16) {
	return key[5], binary.BigEndian.Uint32(key[6:]), binary.BigEndian.Uint16(key[10:])
}
