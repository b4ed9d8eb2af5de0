package search

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"hash/crc64"
	"math"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/mih"
)

// A position is a place in the order of hits: just behind an item, or behind all items of a code. A cursor is
// a position and a fingerprint of the query.
//
// A position is not a number of hits. So an answer continues at the right place if items came or went since,
// even if the item of the position is gone: every greater item follows.
type position struct {
	byScore  bool    // the order is by score; distance is not compared
	distance int     // of the code, in bits
	score    float64 // of the code; NaN for a query by code
	number   uint32  // of the code
	row      uint32  // of the item

	similarity float32 // of the item; first for the item that the query starts from

	// Set by weigh for the code of the position, if counted.
	counted bool
	left    int         // items of the code that follow the position
	ranked  []rankedRow // the first k of them
	k       int
}

// compare tells whether a code is before the code of the position (negative), is that code (0), or is after
// it (positive). A NaN score is neither greater nor less, so for queries by code the number decides.
func (p *position) compare(c mih.Scored) int {
	switch {
	case !p.byScore && c.Distance != p.distance:
		return c.Distance - p.distance
	case c.Score > p.score:
		return -1
	case c.Score < p.score:
		return 1
	}
	return cmp.Compare(c.Number, p.number)
}

// beyond reports whether all items of a code are before the position.
func (p *position) beyond(c mih.Scored) bool { return p.compare(c) < 0 }

// weigh returns the number of the rows, all of code number n at that distance, that pass the filter and the
// least similarity, and follow the cursor. It is a Weight of mih.Query: codes count only possible hits, so a
// search finds as many codes as k hits need. k is the number of items that the search wants.
//
// If a read fails, all rows count. The search may then find too little, but reading the answer meets the same
// error and returns it.
func (s *Searcher) weigh(ctx context.Context, rows mih.Rows, n uint32, distance, k int) int {
	p := s.after
	if p != nil && !p.byScore && distance < p.distance {
		return 0
	}
	w := rows.LenIn(s.filter)
	if w == 0 {
		return 0
	}
	if p != nil && (p.byScore || distance == p.distance) {
		c := mih.Scored{Number: n, Distance: distance, Score: math.NaN()}
		if s.p.Z != nil {
			code, err := s.codeOf(n)
			if err != nil {
				return w // reading the run returns the error
			}
			c.Score = s.p.scorer.Score(code)
		}
		switch at := p.compare(c); {
		case at < 0:
			return 0
		case at == 0:
			if !p.counted && !s.count(ctx, rows, k) {
				return w
			}
			return p.left
		}
	}
	if s.limited() {
		if n, err := s.countSimilar(ctx, rows); err == nil {
			w = n
		}
	}
	return w
}

// count ranks the rows of the cursor's code: how many follow the cursor, and the first k of them, so that
// rank need not rank them again. It reports whether they could be read.
func (s *Searcher) count(ctx context.Context, rows mih.Rows, k int) bool {
	p, after := s.after, s.afterItem()
	if s.p.direction == nil {
		from := after.next()
		p.ranked, p.k, p.counted = s.rankByRow(nil, rows, after, k), k, true
		if p.left = rows.LenFrom(from, s.filter); s.self != noRow && s.self >= from &&
			rows.Contains(s.self) && (s.filter == nil || s.filter.Contains(s.self)) {
			p.left-- // it came first
		}
		return true
	}
	top := topRows{k: k}
	left, err := s.rankBySimilarity(ctx, &top, rows, after)
	p.ranked, p.left, p.k = top.appendTo(nil), left, k
	p.counted = err == nil
	return p.counted
}

// afterItem returns the item before the cursor.
func (s *Searcher) afterItem() *rankedRow {
	x := rankedRow{s.after.similarity, s.after.row}
	if x.similarity == first {
		x.row = noRow // it was on an earlier page, even if it was deleted and stored again since
	}
	return &x
}

// cursorVersion is the first byte of a cursor. A change of the layout or of similarities needs a new version,
// so that old cursors are refused and not misread. Version 1 rounded similarities differently, and had
// another fingerprint.
const cursorVersion = 2

// cursorBytes is the length of a cursor before it becomes base64, in the alphabet for URLs and without
// padding:
//
//	u8  cursorVersion
//	u64 fingerprint of the query
//	u32 collection, u32 space, u32 revision
//	u16 distance, u64 score, u32 number, all of the code
//	u32 similarity, u32 row, both of the item
//	u32 CRC-32C of all before
//
// Numbers are little-endian, floats their IEEE bits. Programs keep cursors, even across restarts of the
// database.
const cursorBytes = 1 + 8 + 3*4 + 2 + 8 + 4 + 4 + 4 + 4

var (
	cursorSums   = crc32.MakeTable(crc32.Castagnoli)
	fingerprints = crc64.MakeTable(crc64.ECMA)
)

// cursor returns the cursor behind a place.
func (s *Searcher) cursor(p place) string {
	b := []byte{cursorVersion}
	b = binary.LittleEndian.AppendUint64(b, s.fingerprint())
	b = binary.LittleEndian.AppendUint32(b, s.Cv.ID)
	space, revision := s.space()
	b = binary.LittleEndian.AppendUint32(b, space)
	b = binary.LittleEndian.AppendUint32(b, revision)
	b = binary.LittleEndian.AppendUint16(b, uint16(p.code.Distance))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(p.code.Score))
	b = binary.LittleEndian.AppendUint32(b, p.code.Number)
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(p.row.similarity))
	b = binary.LittleEndian.AppendUint32(b, p.row.row)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, cursorSums))
	return base64.RawURLEncoding.EncodeToString(b)
}

// position reads a cursor, which may come from anybody. The checksum finds accidents; a forged position only
// makes the answer begin elsewhere. A cursor of another query, space or revision is fault.ErrInvalid, because
// codes and scores of another revision have another order.
func (s *Searcher) position(cursor string, asked Order) (*position, error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) != cursorBytes || b[0] != cursorVersion ||
		crc32.Checksum(b[:cursorBytes-4], cursorSums) != binary.LittleEndian.Uint32(b[cursorBytes-4:]) {
		return nil, fault.Invalid("cursor %.80q: it is not one that a search has returned", cursor)
	}
	space, revision := s.space()
	switch u32 := binary.LittleEndian.Uint32; {
	case u32(b[9:]) == s.Cv.ID && u32(b[13:]) == 0 && space != 0:
		return nil, fault.Invalid(
			"the cursor is of an answer of before the training, by vectors: search from the start")
	case u32(b[9:]) == s.Cv.ID && (u32(b[13:]) != space || u32(b[17:]) != revision):
		return nil, fault.Invalid(
			"the cursor is of space %d, revision %d; now it is space %d, revision %d: search from the start",
			u32(b[13:]), u32(b[17:]), space, revision)
	case u32(b[9:]) != s.Cv.ID || !s.goesOn(binary.LittleEndian.Uint64(b[1:]), asked):
		return nil, fault.Invalid(
			"the cursor is of another query: a search goes on with the query that it began with, and by vectors with the metric and the space of modalities")
	}
	b = b[21:]
	return &position{
		byScore:    s.byScore,
		distance:   int(binary.LittleEndian.Uint16(b)),
		score:      math.Float64frombits(binary.LittleEndian.Uint64(b[2:])),
		number:     binary.LittleEndian.Uint32(b[10:]),
		similarity: math.Float32frombits(binary.LittleEndian.Uint32(b[14:])),
		row:        binary.LittleEndian.Uint32(b[18:]),
	}, nil
}

// space returns the searched space and its revision; 0 for an answer by vectors, which compares no codes.
func (s *Searcher) space() (id, revision uint32) {
	if s.byVectors {
		return 0, 0
	}
	return s.Cv.Space.ID, s.Cv.Space.Revision
}

// goesOn reports whether a cursor with that fingerprint belongs to the query. With the order auto, an answer
// goes on in the order in which it began, even if auto would choose the other order now.
func (s *Searcher) goesOn(fingerprint uint64, asked Order) bool {
	if s.fingerprint() == fingerprint {
		return true
	}
	if asked != byAuto || s.byVectors {
		return false
	}
	s.mark = 0
	if s.q.Order == byAuto || !s.compareVectors() {
		s.q.Order, s.p.features = byProjection, nil
	} else {
		s.q.Order = byAuto
	}
	return s.fingerprint() == fingerprint
}

// fingerprint is a hash of the parts that a query shares with the query of its cursor: start, filter, order
// and least similarity. K and Plan may differ. New has set p before, so the code and projection count, not
// the way in which they were given. Cursors store the fingerprint: it must not change without a new
// cursorVersion.
func (s *Searcher) fingerprint() uint64 {
	if s.mark != 0 {
		return s.mark
	}
	b := make([]byte, 0, 1024)
	for _, part := range [...]string{s.q.To, s.q.From, s.q.Key, s.q.Where, s.args} {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(part))), part...)
	}
	b = append(b, byte(s.q.Order), 0)
	if s.q.ExcludeSelf {
		b[len(b)-1] = 1
	}
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(s.q.MinSimilarity))
	if s.byVectors {
		b = record.AppendVector(append(b, byte(s.p.modality)), s.p.vector)
		if s.metric != record.Cosine || len(s.shares) > 1 || s.shares[0] != s.p.modality {
			b = append(b, s.metric...)
			for _, t := range s.shares {
				b = append(b, byte(t))
			}
		}
	}
	for _, w := range s.p.Code {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	for _, z := range s.p.Z {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(z))
	}
	s.mark = crc64.Checksum(b, fingerprints)
	return s.mark
}
