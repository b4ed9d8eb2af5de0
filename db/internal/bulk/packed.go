package bulk

import (
	"encoding/binary"
	"math"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/model"
)

// packed holds changes in little more memory than the stored bytes of their items: state.Change and
// record.Item take some 200 bytes more each, and a batch may have millions. Each change is
//
//	uvarint  length of what follows
//	byte     kind, and flags for what of the item is not nil
//	uvarint  collection
//	uvarint  length of the key; the key
//	uvarint  number of words of the code; 8 bytes each
//	uvarint  number of modalities; of each uvarint length and feature record, 0 being none
//	uvarint  number of labels; the number of each in names
//	         record of fields and payload, without labels
//
// where what a flag says is nil is left out. Several goroutines may read it at once.
type packed struct {
	n      int      // number of changes
	bytes  int      // their memory, about
	flags  byte     // flags that any change has
	chunks [][]byte // whole changes, in order
	places []place  // of each placeEvery-th change

	names []string          // of labels, as they first appear
	ids   map[string]uint32 // by name, the index in names

	scratch, features []byte // of add
}

// A place is the beginning of a change.
type place struct{ chunk, at uint32 }

const (
	placeEvery = 16
	chunkBytes = 1 << 20 // of a chunk, at most, unless a change is larger

	kindMask   = 7
	expectNone = byte(state.ExpectItem) + 1 // a kind of its own: an expectation of nothing

	hasCode, hasVectors, hasLabels, hasRecord, hasPayload = 8, 16, 32, 64, 128
)

// add adds a change, and keeps nothing of it.
func (p *packed) add(ch *state.Change) error {
	it, head := ch.Item, byte(ch.Kind)
	if ch.Kind == state.ExpectItem {
		if ch.Old == nil {
			head = expectNone
		} else {
			it = ch.Old
		}
	}
	set := func(flag byte, is bool) {
		if is {
			head |= flag
		}
	}
	set(hasCode, it.Code != nil)
	set(hasVectors, it.Vectors != nil)
	set(hasLabels, it.Labels != nil)
	set(hasPayload, it.Payload != nil)
	set(hasRecord, it.Payload != nil || it.Fields != nil)
	b := binary.AppendUvarint(append(p.scratch[:0], head), uint64(ch.Collection))
	b = append(binary.AppendUvarint(b, uint64(len(it.Key))), it.Key...)
	if it.Code != nil {
		b = binary.AppendUvarint(b, uint64(len(it.Code)))
		for _, w := range it.Code {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
	}
	if it.Vectors != nil {
		b = binary.AppendUvarint(b, uint64(len(it.Vectors)))
		for _, v := range it.Vectors {
			if p.features = p.features[:0]; v.Present() {
				p.features = record.AppendVector(p.features, v)
			}
			b = append(binary.AppendUvarint(b, uint64(len(p.features))), p.features...)
		}
	}
	if it.Labels != nil {
		b = binary.AppendUvarint(b, uint64(len(it.Labels)))
		for _, name := range it.Labels {
			b = binary.AppendUvarint(b, uint64(p.label(name)))
		}
	}
	if head&hasRecord != 0 {
		var err error
		if b, err = (&codec.ItemRecord{Fields: it.Fields, Payload: it.Payload}).Append(b); err != nil {
			return err
		}
	}
	p.scratch, p.flags = b, p.flags|head&^kindMask
	p.append(b)
	return nil
}

// label returns the number of a label.
func (p *packed) label(name string) uint32 {
	id, ok := p.ids[name]
	if !ok {
		if p.ids == nil {
			p.ids = map[string]uint32{}
		}
		id = uint32(len(p.names))
		p.ids[name] = id
		p.names = append(p.names, name)
		p.bytes += len(name) + 64
	}
	return id
}

// append adds a packed change.
func (p *packed) append(b []byte) {
	last, need := len(p.chunks)-1, len(b)+binary.MaxVarintLen32
	if last < 0 || cap(p.chunks[last])-len(p.chunks[last]) < need {
		size := max(need, min(chunkBytes, max(256, p.bytes)))
		p.chunks = append(p.chunks, make([]byte, 0, size))
		p.bytes += size
		last++
	}
	if p.n%placeEvery == 0 {
		p.places = append(p.places, place{uint32(last), uint32(len(p.chunks[last]))})
	}
	p.chunks[last] = append(binary.AppendUvarint(p.chunks[last], uint64(len(b))), b...)
	p.n++
}

// An entry is a packed change. Its slices are parts of it.
type entry struct {
	of         *packed
	kind       byte
	flags      byte
	collection uint32
	key        []byte
	code       []byte
	modalities int
	vectors    []byte // of all modalities
	labels     []byte
	record     []byte
}

// each calls f with the changes from from to to-1. The entry is valid until f returns.
func (p *packed) each(from, to int, f func(i int, e *entry) error) error {
	if from >= to {
		return nil
	}
	at, e := p.places[from/placeEvery], entry{of: p}
	rest := p.chunks[at.chunk][at.at:]
	for i := from / placeEvery * placeEvery; i < to; i++ {
		if len(rest) == 0 {
			at.chunk++
			rest = p.chunks[at.chunk]
		}
		n := int(uvarint(&rest))
		if i >= from {
			e.parse(rest[:n])
			if err := f(i, &e); err != nil {
				return err
			}
		}
		rest = rest[n:]
	}
	return nil
}

// at returns change i.
func (p *packed) at(i int) (at entry) {
	_ = p.each(i, i+1, func(_ int, e *entry) error { at = *e; return nil })
	return at
}

// uvarint takes a number from the front of b.
func uvarint(b *[]byte) uint64 {
	if x := (*b)[0]; x < 0x80 { // mostly
		*b = (*b)[1:]
		return uint64(x)
	}
	x, n := binary.Uvarint(*b)
	*b = (*b)[n:]
	return x
}

func take(b *[]byte, n int) []byte {
	part := (*b)[:n]
	*b = (*b)[n:]
	return part
}

func (e *entry) parse(b []byte) {
	*e = entry{of: e.of, kind: b[0] & kindMask, flags: b[0] &^ kindMask}
	b = b[1:]
	e.collection = uint32(uvarint(&b))
	e.key = take(&b, int(uvarint(&b)))
	if e.flags&hasCode != 0 {
		e.code = take(&b, 8*int(uvarint(&b)))
	}
	if e.flags&hasVectors != 0 {
		e.modalities = int(uvarint(&b))
		e.vectors = b
		for range e.modalities {
			take(&b, int(uvarint(&b)))
		}
		e.vectors = e.vectors[:len(e.vectors)-len(b)]
	}
	if e.flags&hasLabels != 0 {
		e.labels = b
		for range uvarint(&b) {
			uvarint(&b)
		}
		e.labels = e.labels[:len(e.labels)-len(b)]
	}
	e.record = b
}

// appendCode appends the words of the code.
func (e *entry) appendCode(dst codec.Code) codec.Code {
	for b := e.code; len(b) > 0; b = b[8:] {
		dst = append(dst, binary.LittleEndian.Uint64(b))
	}
	return dst
}

// eachVector calls f with the modalities that the item has, and the feature record of each.
func (e *entry) eachVector(f func(modality int, features []byte) error) error {
	b := e.vectors
	for t := range e.modalities {
		features := take(&b, int(uvarint(&b)))
		if len(features) == 0 {
			continue
		}
		if err := f(t, features); err != nil {
			return err
		}
	}
	return nil
}

// decodeVectors returns the vectors, in memory of their own.
func (e *entry) decodeVectors() (vectors []model.Vector) {
	if e.flags&hasVectors == 0 {
		return nil
	}
	vectors = make([]model.Vector, e.modalities)
	_ = e.eachVector(func(t int, features []byte) error {
		m := record.Modality{Dim: (len(features) - 1) / 4, Sparse: codec.IsSparseFeatures(features)}
		if m.Sparse {
			m.Dim = math.MaxInt
		}
		return m.DecodeVector(&vectors[t], features) // there is no error: add has made them
	})
	return vectors
}

// appendLabels appends the numbers of the labels, in the order in which they were given.
func (e *entry) appendLabels(dst []uint32) []uint32 {
	if len(e.labels) > 0 {
		b := e.labels
		for range uvarint(&b) {
			dst = append(dst, uint32(uvarint(&b)))
		}
	}
	return dst
}

// labelNames returns the names of the labels, nil if they are not set.
func (e *entry) labelNames() []string {
	if e.flags&hasLabels == 0 {
		return nil
	}
	names := []string{}
	for _, id := range e.appendLabels(nil) {
		names = append(names, e.of.names[id])
	}
	return names
}

// decodeRecord returns fields and payload, in memory of their own.
func (e *entry) decodeRecord() (codec.ItemRecord, error) {
	if len(e.record) == 0 {
		return codec.ItemRecord{}, nil
	}
	rec, err := codec.DecodeItemRecord(e.record)
	if err != nil {
		return codec.ItemRecord{}, err
	}
	if rec.Payload == nil && e.flags&hasPayload != 0 {
		rec.Payload = []byte{}
	}
	return *rec, nil
}

// change returns the change as the committer takes it, in memory of its own.
func (e *entry) change() (*state.Change, error) {
	rec, err := e.decodeRecord()
	if err != nil {
		return nil, err
	}
	c := &struct { // one piece of memory
		state.Change
		item record.Item
	}{
		Change: state.Change{Collection: e.collection, Kind: state.ChangeKind(e.kind)},
		item: record.Item{Key: string(e.key), Vectors: e.decodeVectors(), Code: e.appendCode(nil),
			Labels: e.labelNames(), Fields: rec.Fields, Payload: rec.Payload},
	}
	switch c.Item = &c.item; e.kind {
	case expectNone:
		c.Kind = state.ExpectItem
	case byte(state.ExpectItem):
		c.Old, c.Item = c.Item, &record.Item{Key: c.item.Key}
	}
	return &c.Change, nil
}
