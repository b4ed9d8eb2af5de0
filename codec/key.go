package codec

import (
	"encoding/binary"
	"fmt"
)

// Keys are big-endian so that their byte order is the order in which things
// are read: a kind byte, the collection (u32), then what the kind needs.
//
//	kind  rest of the key                              value
//	00    record (u8)                                  UUID; commit sequence; next collection id
//	01    name (bytes)                                 collection id (u32)
//	02    collection                                   descriptor of the collection (JSON)
//	03    collection, label (u32)                      name of the label
//	04    collection                                   counters
//	05    name (bytes)                                 mark: bytes of a program's own
//	10    collection, key (bytes)                      row (u32)
//	11    collection, row (u32)                        item record: labels, fields, payload
//	12    collection, row, modality (u16)              feature record
//	13    collection, row >> 8 (u32)                   block: row -> key
//	20    collection, space                            descriptor of the space (JSON)
//	21    collection, space, chunk (u32)               model, in chunks
//	22    collection, space, chunk (u32)               statistics A_t and B_t, in chunks
//	23    collection, space, revision (u32), chunk     descriptor of the revision (JSON), chunk 0;
//	      (u32)                                        its projections, in chunks from 1
//	24    collection, space, set (u8), row >> 16       layer: rows of the set, low 16 bits
//	25    collection, space, number (u64)              retraction: what a row has taught that is gone
//	26    collection, space, row >> 8                  block: row -> what it has taught
//	30    collection, space, row >> 8                  block: row -> code number, provenance, revision
//	31    collection, space, code number >> 8          block: code number -> code, row
//	33    collection, space, code number               layer: rows, low 16 bits, where several carry it
//	      (u32), row >> 16
//	34    collection, space, row >> 8                  block: row -> fused projection
//	40    collection, space, table (u16),              posting: code numbers
//	      substring (u32)
//	50    collection, set (u8), id (u32), row >> 16    layer: rows of the set, low 16 bits
//	51    collection, field (u16), row >> 16 (u16),    layer: rows of the value, low 16 bits
//	      value (bytes) or slice (u8)
//	52    collection, field (u16), row >> 16 (u16),    layer: rows whose text has the term, low 16 bits
//	      term (bytes)
//	60    collection, index (u32)                      descriptor of an index of vectors (JSON)
//	61    collection, index, cell (u32)                centre of the cell
//	62    collection, index, row >> 8 (u32)            block: row -> cell and code of its vector there
//	63    collection, index, row >> 16 (u32)           layer: rows whose entry is out of date, low 16 bits
//
// The kinds of blocks, layers and postings are written with Merge, see [Merger].
const (
	KindDatabase   = 0x00
	KindName       = 0x01
	KindCollection = 0x02
	KindLabel      = 0x03
	KindCounters   = 0x04
	KindMark       = 0x05
	KindKey        = 0x10
	KindItem       = 0x11
	KindFeatures   = 0x12
	KindRowKeys    = 0x13
	KindSpace      = 0x20
	KindModel      = 0x21
	KindStatistics = 0x22
	KindRevision   = 0x23
	KindOnlineRows = 0x24
	KindRetraction = 0x25
	KindLessons    = 0x26
	KindRowCodes   = 0x30
	KindCodes      = 0x31
	KindCodeRows   = 0x33
	KindProjection = 0x34
	KindSubstring  = 0x40
	KindRows       = 0x50
	KindFieldRows  = 0x51
	KindFieldWords = 0x52
	KindIndex      = 0x60
	KindCentre     = 0x61
	KindEntries    = 0x62
	KindStale      = 0x63
)

// Records of KindDatabase.
const (
	RecordUUID     = 0x00
	RecordSequence = 0x01
	RecordNextID   = 0x02
)

// Sets of KindRows.
const (
	SetLive     = 0x00 // every row that has an item; id 0
	SetModality = 0x01 // rows that have modality id
	SetLabel    = 0x02 // rows that have label id
)

// Sets of KindOnlineRows.
const (
	SetPending = 0x00 // rows that the online step has not seen
	SetRecode  = 0x01 // rows whose code is not that of their labels yet
)

// BlockRows is the number of rows, or code numbers, of a packed block.
const BlockRows = 256

// DatabaseKey returns the key of one record about the whole database.
func DatabaseKey(record byte) []byte { return []byte{KindDatabase, record} }

// NameKey returns the key that holds the id of a named collection.
func NameKey(name string) []byte { return append([]byte{KindName}, name...) }

// MarkKey returns the key of a mark.
func MarkKey(name string) []byte { return append([]byte{KindMark}, name...) }

// CollectionKey returns the key of a kind that a collection has once, and the prefix of
// a kind that it has often.
func CollectionKey(kind byte, collection uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{kind}, collection)
}

// ItemKey returns the key of KindKey for an item's key.
func ItemKey(collection uint32, key string) []byte {
	return append(CollectionKey(KindKey, collection), key...)
}

// NumberKey returns the key of the kinds that end in one u32 after the
// collection: a label, a space, an index, a row or a block.
func NumberKey(kind byte, collection, n uint32) []byte {
	return binary.BigEndian.AppendUint32(CollectionKey(kind, collection), n)
}

// FeatureKey returns the key of the features of one modality of a row.
func FeatureKey(collection, row uint32, modality uint16) []byte {
	return binary.BigEndian.AppendUint16(NumberKey(KindFeatures, collection, row), modality)
}

// ChunkKey returns the key of one chunk of the model or the statistics of a space, and of a
// centre, a block or a layer of an index of vectors.
func ChunkKey(kind byte, collection, space, chunk uint32) []byte {
	return binary.BigEndian.AppendUint32(NumberKey(kind, collection, space), chunk)
}

// RevisionKey returns the key of one chunk of a revision; chunk 0 is its descriptor.
func RevisionKey(collection, space, revision, chunk uint32) []byte {
	return binary.BigEndian.AppendUint32(RevisionPrefix(collection, space, revision), chunk)
}

// RevisionPrefix returns the prefix of all chunks of a revision.
func RevisionPrefix(collection, space, revision uint32) []byte {
	return ChunkKey(KindRevision, collection, space, revision)
}

// RevisionKeyParts returns revision and chunk of a key of KindRevision that has passed
// CheckKey.
func RevisionKeyParts(key []byte) (revision, chunk uint32) {
	return binary.BigEndian.Uint32(key[9:]), binary.BigEndian.Uint32(key[13:])
}

// OnlineRowsKey returns the key of a layer: the rows container<<16 to container<<16 +
// 65535 that are in a set of a space.
func OnlineRowsKey(collection, space uint32, set byte, container uint16) []byte {
	k := append(NumberKey(KindOnlineRows, collection, space), set)
	return binary.BigEndian.AppendUint16(k, container)
}

// OnlineRowsKeyParts returns the parts of a key of KindOnlineRows that has passed
// CheckKey.
func OnlineRowsKeyParts(key []byte) (set byte, container uint16) {
	return key[9], binary.BigEndian.Uint16(key[10:])
}

// RetractionKey returns the key of a retraction of a space.
func RetractionKey(collection, space uint32, number uint64) []byte {
	return binary.BigEndian.AppendUint64(NumberKey(KindRetraction, collection, space), number)
}

// RetractionNumber returns the number in a key of KindRetraction that has passed CheckKey.
func RetractionNumber(key []byte) uint64 { return binary.BigEndian.Uint64(key[9:]) }

// LessonsKey returns the key of the block that holds the lesson of a row.
func LessonsKey(collection, space, row uint32) []byte {
	return ChunkKey(KindLessons, collection, space, row/BlockRows)
}

// SpaceBlockKey returns the key of a block of a space: KindRowCodes, KindCodes,
// or KindProjection.
func SpaceBlockKey(kind byte, collection, space, block uint32) []byte {
	return ChunkKey(kind, collection, space, block)
}

// SubstringKey returns the key of the posting of the codes of a space that have this
// substring in a table.
func SubstringKey(collection, space uint32, table uint16, substring uint32) []byte {
	return AppendSubstringKey(make([]byte, 0, 15), collection, space, table, substring)
}

// AppendSubstringKey appends the key of [SubstringKey]. With 15 bytes of room in dst it
// does not allocate.
func AppendSubstringKey(dst []byte, collection, space uint32, table uint16, substring uint32) []byte {
	dst = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(append(dst, KindSubstring), collection),
		space)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(dst, table), substring)
}

// CodeRowsKey returns the key of a layer: the rows container<<16 to container<<16 +
// 65535 that carry a code.
func CodeRowsKey(collection, space, code uint32, container uint16) []byte {
	return binary.BigEndian.AppendUint16(CodeRowsPrefix(collection, space, code), container)
}

// CodeRowsPrefix returns the prefix of all keys of KindCodeRows of a code. They are in
// order of the rows.
func CodeRowsPrefix(collection, space, code uint32) []byte {
	return ChunkKey(KindCodeRows, collection, space, code)
}

// RowsKey returns the key of a layer: the rows container<<16 to container<<16 + 65535
// of a set.
func RowsKey(collection uint32, set byte, id uint32, container uint16) []byte {
	return binary.BigEndian.AppendUint16(RowsPrefix(collection, set, id), container)
}

// SetPrefix returns the prefix of the keys of all sets of one kind, such as SetLabel.
func SetPrefix(collection uint32, set byte) []byte {
	return append(CollectionKey(KindRows, collection), set)
}

// RowsPrefix returns the prefix of all keys of a set.
func RowsPrefix(collection uint32, set byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32(SetPrefix(collection, set), id)
}

// FieldRowsKey returns the key of a layer: the rows container<<16 to container<<16 +
// 65535 that have this value in a field. For a field of strings value is the string,
// for others a slice of values, see [SliceOf]. All values of a container stand
// together, strings in byte order.
func FieldRowsKey(collection uint32, field, container uint16, value string) []byte {
	k := make([]byte, 0, fieldRowsPrefix+len(value))
	k = binary.BigEndian.AppendUint32(append(k, KindFieldRows), collection)
	k = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(k, field), container)
	return append(k, value...)
}

// FieldWordsKey returns the key of a layer: the rows container<<16 to container<<16 +
// 65535 whose text in a field has a term.
func FieldWordsKey(collection uint32, field, container uint16, term string) []byte {
	k := FieldRowsKey(collection, field, container, term)
	k[0] = KindFieldWords
	return k
}

// FieldWordsPrefix returns the prefix of the keys of all terms of a field.
func FieldWordsPrefix(collection uint32, field uint16) []byte {
	return FieldWordsKey(collection, field, 0, "")[:fieldRowsPrefix-2]
}

// FieldPrefix returns the prefix of the keys of all sets of rows of the values of a field.
func FieldPrefix(collection uint32, field uint16) []byte {
	return FieldRowsKey(collection, field, 0, "")[:fieldRowsPrefix-2]
}

// PrefixEnd returns the first key after all keys that start with prefix, or nil if
// there is none.
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

// keyLengths holds the length of the keys of each kind with a fixed length.
var keyLengths = map[byte]int{
	KindDatabase: 2, KindCollection: 5, KindLabel: 9, KindCounters: 5, KindItem: 9,
	KindFeatures: 11, KindRowKeys: 9, KindSpace: 9, KindModel: 13, KindStatistics: 13,
	KindRevision: 17, KindOnlineRows: 12, KindRetraction: 17, KindLessons: 13,
	KindRowCodes: 13, KindCodes: 13, KindProjection: 13, KindRows: 12,
	KindCodeRows: 15, KindSubstring: 15,
	KindIndex: 9, KindCentre: 13, KindEntries: 13, KindStale: 13,
}

// CheckKey returns an error unless key has the form of a key. The error wraps
// ErrCorrupt.
func CheckKey(key []byte) error {
	if len(key) == 0 {
		return fmt.Errorf("%w: empty key", ErrCorrupt)
	}
	switch kind := key[0]; kind {
	case KindName:
		if len(key) < 2 {
			return fmt.Errorf("%w: key %x names no collection", ErrCorrupt, key)
		}
	case KindMark:
		if len(key) < 2 {
			return fmt.Errorf("%w: key %x names no mark", ErrCorrupt, key)
		}
	case KindKey:
		if len(key) < 6 {
			return fmt.Errorf("%w: key %x names no item", ErrCorrupt, key)
		}
	case KindFieldRows, KindFieldWords:
		if len(key) < fieldRowsPrefix {
			return fmt.Errorf("%w: key %x names no field", ErrCorrupt, key)
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

// fieldRowsPrefix is the length of a key of KindFieldRows without its value, and of
// KindFieldWords without its term.
const fieldRowsPrefix = 9

// LastNumber returns the u32 at the end of a key of NumberKey, ChunkKey, SpaceBlockKey
// or SubstringKey (the substring). The key must have passed CheckKey.
func LastNumber(key []byte) uint32 { return binary.BigEndian.Uint32(key[len(key)-4:]) }

// FeatureKeyParts returns row and modality of a key of KindFeatures that has
// passed CheckKey.
func FeatureKeyParts(key []byte) (row uint32, modality uint16) {
	return binary.BigEndian.Uint32(key[5:]), binary.BigEndian.Uint16(key[9:])
}

// SubstringKeyParts returns table and substring of a key of KindSubstring that has
// passed CheckKey.
func SubstringKeyParts(key []byte) (table uint16, substring uint32) {
	return binary.BigEndian.Uint16(key[9:]), binary.BigEndian.Uint32(key[11:])
}

// CodeRowsKeyParts returns code number and container of a key of KindCodeRows that
// has passed CheckKey.
func CodeRowsKeyParts(key []byte) (code uint32, container uint16) {
	return binary.BigEndian.Uint32(key[9:]), binary.BigEndian.Uint16(key[13:])
}

// RowsKeyParts returns the parts of a key of KindRows that has passed CheckKey.
func RowsKeyParts(key []byte) (set byte, id uint32, container uint16) {
	return key[5], binary.BigEndian.Uint32(key[6:]), binary.BigEndian.Uint16(key[10:])
}

// FieldRowsKeyParts returns the parts of a key of KindFieldRows, or of KindFieldWords, that has
// passed CheckKey. value, or the term, aliases the key.
func FieldRowsKeyParts(key []byte) (field, container uint16, value []byte) {
	return binary.BigEndian.Uint16(key[5:]), binary.BigEndian.Uint16(key[7:]), key[fieldRowsPrefix:]
}

// A FormatError is a model, its statistics or a revision in another format than this version reads.
type FormatError struct {
	What             string // what was read
	Found, Supported int    // its format, and the one that this version reads
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s has format %d, this version reads format %d alone: use the version that has written it", e.What, e.Found, e.Supported)
}
