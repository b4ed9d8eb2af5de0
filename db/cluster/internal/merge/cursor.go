package merge

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/fault"
)

// A Cursor says how far pages have come in each shard. The zero Cursor is the start, of any number of shards.
// A Cursor is an immutable value that goroutines may share.
//
// It is as stable as the cursors of the shards: items that are put or deleted between two pages do not shift
// the hits that follow. A new item behind the place in its shard is found, unless that shard has ended.
type Cursor struct {
	basis  Basis
	known  bool    // a shard has answered, and basis is the basis of its answer
	places []place // by shard; none: the start
}

// A place says how far pages have come in a shard. The zero place is its start.
type place struct {
	ended bool   // the shard has no more hits
	after string // otherwise the shard's own cursor behind the last taken hit; "": none was taken
}

var ended = place{ended: true}

// After returns the shard's own cursor for the next page (db.Query.After). It is "" if no hit of the shard
// has been taken, or if the shard has ended.
func (c Cursor) After(shard int) string {
	if len(c.places) == 0 {
		return ""
	}
	return c.places[shard].after
}

// Ended reports whether all hits of a shard have been taken. It need not be asked for more.
func (c Cursor) Ended(shard int) bool { return len(c.places) > 0 && c.places[shard].ended }

// Done reports whether all shards have ended: this is the last page.
func (c Cursor) Done() bool {
	for _, p := range c.places {
		if !p.ended {
			return false
		}
	}
	return len(c.places) > 0
}

// Basis returns the common basis of the earlier pages; ok is false at the start. Query that space in that
// order: otherwise a shard without taken hits would choose for itself.
func (c Cursor) Basis() (b Basis, ok bool) { return c.basis, c.known }

// A cursor over shards, in the base64 alphabet for URLs without padding:
//
//	u8  cursorVersion, with the highest bit set, which tells it from the cursor of one database
//	u16 number of shards
//	u8  1 + order of the answers; 0 if no shard has answered yet, and then space and revision are 0
//	u32 space, u32 revision
//	    for each shard
//	u8  state: at its start, at its end, or behind a cursor, as bytes or as text
//	    if it is behind a cursor
//	u8  number of leading bytes shared with the cursor before it
//	u8  number of bytes that follow
//	    these bytes
//	u32 CRC-32C of all before
//
// Numbers are little-endian. The cursors of shards are texts in the same alphabet. Their decoded bytes are
// stored if these encode to the same text, otherwise the text. Leading bytes shared with the cursor before,
// mostly the fingerprint of the query, are stored once. Merge takes any cursors and does not interpret them.
//
// With 64 shards, all of them begun, that is 2.5 KB with the cursors of package db today (3.6 KB if
// collections have other numbers in each shard), and 22 KB with the longest that Page takes. A shard at its
// start or end takes one byte, and a page of 10 hits moves at most ten shards: some 400 bytes after the first
// page.
const (
	cursorVersion = 1
	overShards    = 1 << 7
	cursorHead    = 1 + 2 + 1 + 4 + 4
	cursorSum     = 4

	// MaxShards bounds the shards of a cursor.
	MaxShards = 1<<16 - 1

	// maxAfter bounds the bytes of a shard's cursor.
	maxAfter = 255
)

// States of a shard in a cursor.
const (
	atStart = iota
	atEnd
	behindBytes
	behindText
)

var cursorSums = crc32.MakeTable(crc32.Castagnoli)

// String returns the cursor as a text for ParseCursor; "" for the start. It has only letters, digits, - and
// _.
func (c Cursor) String() string {
	if len(c.places) == 0 {
		return ""
	}
	b := make([]byte, 0, cursorHead+cursorSum+64*len(c.places))
	b = append(b, overShards|cursorVersion)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(c.places)))
	if c.known {
		b = append(b, byte(c.basis.Rerank)+1)
	} else {
		b = append(b, 0)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(c.basis.Space))
	b = binary.LittleEndian.AppendUint32(b, c.basis.Revision)
	var before []byte
	for _, p := range c.places {
		switch {
		case p.ended:
			b = append(b, atEnd)
			continue
		case p.after == "":
			b = append(b, atStart)
			continue
		}
		how, own := byte(behindBytes), decoded(p.after)
		if own == nil {
			how, own = behindText, []byte(p.after)
		}
		shared := 0
		for shared < len(own) && shared < len(before) && own[shared] == before[shared] {
			shared++
		}
		b = append(b, how, byte(shared), byte(len(own)-shared))
		b = append(b, own[shared:]...)
		before = own
	}
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, cursorSums))
	return base64.RawURLEncoding.EncodeToString(b)
}

// decoded returns the bytes that a text encodes, or nil.
func decoded(text string) []byte {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || base64.RawURLEncoding.EncodeToString(b) != text {
		return nil
	}
	return b
}

// ParseCursor reads the text of a cursor over so many shards; "" is the start. The text may come from
// anybody: the checksum finds accidents, and the shard that is asked judges a forged place. An invalid text,
// one of another version, and one of another number of shards is a db.ErrInvalid. The result has the same
// text again.
func ParseCursor(s string, shards int) (Cursor, error) {
	if s == "" {
		return Cursor{}, nil
	}
	none := func() (Cursor, error) {
		return Cursor{}, fault.Invalid("cursor %.80q: it is not one that a search over shards has returned",
			s)
	}
	if len(s) > base64.RawURLEncoding.EncodedLen(cursorHead+cursorSum+MaxShards*(3+maxAfter)) {
		return none()
	}
	b := decoded(s)
	if len(b) < cursorHead+cursorSum {
		return none()
	}
	end := len(b) - cursorSum
	if b[0] < overShards || crc32.Checksum(b[:end], cursorSums) != binary.LittleEndian.Uint32(b[end:]) {
		return none()
	}
	version, n := b[0]-overShards, int(binary.LittleEndian.Uint16(b[1:]))
	switch {
	case version != cursorVersion:
		return Cursor{}, fault.Invalid(
			"the cursor is of version %d, and this program has version %d: search from the start", version,
			cursorVersion)
	case n != shards:
		return Cursor{}, fault.Invalid(
			"the cursor is over %d shards; now there are %d: search from the start", n, shards)
	case n == 0 || end-cursorHead < n:
		return none()
	}
	c := Cursor{places: make([]place, n)}
	if order := b[3]; order > 0 {
		c.known = true
		c.basis = Basis{db.Space(binary.LittleEndian.Uint32(b[4:])), binary.LittleEndian.Uint32(b[8:]),
			db.Rerank(order - 1)}
	}
	if !readPlaces(c.places, b[cursorHead:end]) || c.String() != s {
		return none()
	}
	return c, nil
}

// readPlaces reads the places of a cursor, and reports whether b has them and nothing else.
func readPlaces(places []place, b []byte) bool {
	var before []byte
	for i := range places {
		if len(b) == 0 {
			return false
		}
		how := b[0]
		b = b[1:]
		switch how {
		case atStart:
			continue
		case atEnd:
			places[i] = ended
			continue
		}
		if how > behindText || len(b) < 2 {
			return false
		}
		shared, more := int(b[0]), int(b[1])
		b = b[2:]
		if shared > len(before) || more > len(b) {
			return false
		}
		own := make([]byte, 0, shared+more)
		own = append(append(own, before[:shared]...), b[:more]...)
		b, before = b[more:], own
		if how == behindBytes {
			places[i].after = base64.RawURLEncoding.EncodeToString(own)
		} else {
			places[i].after = string(own)
		}
		if places[i].after == "" || len(places[i].after) > maxAfter {
			return false
		}
	}
	return len(b) == 0
}
