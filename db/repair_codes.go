package db

import (
	"bytes"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/bulk"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// mendCodes gives all items their codes: those that are stored, where they are what the
// revision that they name gives, and others by the present revision.
func (s *spaceMender) mendCodes() error {
	if err := s.readTargets(); err != nil {
		return err
	}
	named, err := s.namedRows()
	if err != nil {
		return err
	}
	verifier, done := s.verifier(nil)
	t := s.engine.Tables(0)
	coded := uint64(0)
	work := t.Task(func(first *store.Stream) error {
		stream := func() *store.Stream { return &store.Stream{Ctx: first.Ctx, Tables: t} }
		projections := bulk.NewBlockStream(first, s.space.Projections(s.ID).Block(codec.KindProjection, 0), s.space.ProjectionBytes(), 0)
		p := &codePass{spaceMender: s, verifier: verifier, projections: projections}
		p.named, p.untraced = named, s.known && named.GetCardinality() < s.n.Coded
		for it := s.items.Iterator(); it.HasNext(); {
			row := it.Next()
			if s.n.Building && uint64(row) >= s.n.Built && !s.hasStored(row) {
				continue
			}
			if err := p.add(row); err != nil {
				return err
			}
		}
		if err := p.flush(); err != nil {
			return err
		}
		if err := projections.Flush(); err != nil {
			return err
		}
		if s.IndexOnly {
			p.reportKept(s.n.Coded, named.GetCardinality())
		}
		coded = p.coded
		s.n.Sets = nil
		for _, v := range s.targets {
			n, err := v.write(stream)
			if err != nil {
				return err
			}
			s.n.Sets = append(s.n.Sets, n)
		}
		return nil
	})
	// What is stored is read from the snapshot.
	for _, kind := range []byte{codec.KindRowCodes, codec.KindCodes, codec.KindCodeRows, codec.KindProjection, codec.KindSubstring} {
		if err := s.deleteAll(s.prefix(kind)); err != nil {
			return err
		}
	}
	err = s.flush()
	if err == nil {
		err = s.take(t, work)
	}
	s.n.Coded = coded
	if !s.n.Building {
		s.n.Built, s.n.Activate = 0, false
	}
	if cerr := done(); err == nil {
		err = cerr
	}
	return err
}

// readTargets reads the codes of all targets.
func (s *spaceMender) readTargets() error {
	if s.IndexOnly {
		return s.readKept()
	}
	s.targets = nil
	for _, target := range s.space.Targets {
		v, err := s.readCodes(s.space.Keys(s.ID, target), s.n, nil)
		if err != nil {
			return err
		}
		s.targets = append(s.targets, v)
	}
	return nil
}

// namedRows returns the rows that name a code for any target, or that a code names, whether
// or not they have an item.
func (s *spaceMender) namedRows() (*roaring.Bitmap, error) {
	named := roaring.New()
	err := s.blocks(s.prefix(codec.KindRowCodes), func(_ []byte, first uint32, b codec.Block) error {
		for i := range b.Len() {
			named.Add(first + uint32(b.Offset(i)))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	code := codec.NewCode(s.space.Bits)
	err = s.blocks(s.prefix(codec.KindCodes), func(_ []byte, _ uint32, b codec.Block) error {
		for i := range b.Len() {
			if row, err := codec.DecodeCodeEntry(code, s.space.Bits, b.Entry(i)); err == nil && row != codec.ManyRows {
				named.Add(row)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return named, record.ForEach(s.store, s.prefix(codec.KindCodeRows), func(key, value []byte) error {
		if l, err := codec.DecodeLayer(value); err == nil {
			_, container := codec.CodeRowsKeyParts(key)
			addContainer(named, l.Added, container)
		}
		return nil
	})
}

// hasStored reports whether a row has a code for any target.
func (s *spaceMender) hasStored(row uint32) bool {
	return slices.ContainsFunc(s.targets, func(v *targetMender) bool {
		code, _ := v.stored(row)
		return code != nil
	})
}

// A codePass goes through the items of a space in order of rows.
type codePass struct {
	*spaceMender
	verifier    *spaceVerifier
	projections *bulk.BlockStream // of the store that is made
	coded       uint64
	named       *roaring.Bitmap // rows that name a code, or that one names
	untraced    bool            // there were more items with codes
	account     keptCodes       // of an index-only collection

	items []*verifiedItem
	block []byte      // key of the block of projections that was looked at last
	last  codec.Block // that block
}

func (p *codePass) add(row uint32) error {
	if p.IndexOnly {
		return p.keepStored(row)
	}
	it, err := p.verifier.item(row)
	if err != nil {
		return err
	}
	if p.items = append(p.items, it); len(p.items) == recomputedBlock {
		return p.flush()
	}
	return nil
}

// flush gives the items that have been collected their codes.
func (p *codePass) flush() error {
	s := p.spaceMender
	byRevision := map[uint32][]int{}
	for i, it := range p.items {
		revision := p.revision(it.row)
		if s.kept[revision] == nil {
			revision = 0
		}
		byRevision[revision] = append(byRevision[revision], i)
	}
	made := make([]*recomputedItem, len(p.items))
	var rest []int
	for revision, at := range byRevision {
		if revision == 0 || s.other[revision] {
			rest = append(rest, at...)
			continue
		}
		got, err := p.recompute(s.kept[revision], at)
		if err != nil {
			return err
		}
		for j, i := range at {
			if p.fits(p.items[i], &got[j]) {
				made[i] = &got[j]
			} else {
				rest = append(rest, i)
			}
		}
	}
	got, err := p.recompute(s.space, rest)
	if err != nil {
		return err
	}
	again := map[int]bool{}
	for j, i := range rest {
		made[i], again[i] = &got[j], true
	}
	for i, it := range p.items {
		store := p.keep
		if again[i] {
			store = p.replace
		}
		if err := store(it, made[i]); err != nil {
			return err
		}
	}
	p.items = p.items[:0]
	return s.ctx.Err()
}

// revision returns the revision that the codes of a row are of, 0 where they do not
// agree or there are none.
func (p *codePass) revision(row uint32) uint32 {
	revision := uint32(0)
	for _, v := range p.targets {
		x := v.rows.get(row)
		if x == nil || x.state == carriedNone {
			continue
		}
		if revision != 0 && revision != x.revision || uint64(x.revision) > p.n.Revision {
			return 0
		}
		revision = x.revision
	}
	return revision
}

// recompute makes the codes of items, by their places, with a revision.
func (p *codePass) recompute(sp *spaces.Space, at []int) ([]recomputedItem, error) {
	items := make([]*verifiedItem, len(at))
	for j, i := range at {
		items[j] = p.items[i]
	}
	out := make([]recomputedItem, len(items))
	runs := (len(items) + spaces.EncodeRun - 1) / spaces.EncodeRun
	err := work.ParallelBy(p.ctx, work.All(), 1, runs, func(run int) error {
		return work.Safely(func() error {
			from, to := run*spaces.EncodeRun, min((run+1)*spaces.EncodeRun, len(items))
			recomputeRun(sp, items[from:to], out[from:to])
			return nil
		})
	})
	return out, err
}

// fits reports whether what is stored of the codes of an item is what it gives. A code
// that is lost fits.
func (p *codePass) fits(it *verifiedItem, got *recomputedItem) bool {
	if got.err != nil {
		return false
	}
	code := codec.NewCode(p.space.Bits)
	labelled := !p.recode.Contains(it.row) && p.space.Learned.LabelCode(code, it.labels)
	for i, v := range p.targets {
		want := got.enc.In(i)
		x := v.rows.get(it.row)
		has := x != nil && x.state != carriedNone
		switch {
		case has != (want.Code != nil):
			return false
		case !has:
			continue
		case x.from != want.From, labelled && x.from != codec.ProvenanceLabels: // a label has got a direction since
			return false
		}
		if stored := v.codes.of(x.number); stored != nil {
			code.SetBytes(stored)
			if wrongBits(code, want.Code, got.fused[i]) > 0 {
				return false
			}
		} else if x.number >= record.MaxRows-1 {
			return false
		}
	}
	return true
}

// projection returns the projection of a row as it is stored, nil where it has none that
// can be one.
func (p *codePass) projection(row uint32) []byte {
	key := p.verifier.projectionKey(row)
	if !bytes.Equal(key, p.block) {
		p.block, p.last = key, codec.Block{}
		if b, err := record.Get(p.verifier.snap, key); err == nil && b != nil {
			if block, err := codec.DecodeBlock(b); err == nil {
				p.last = block
			}
		}
	}
	entry, found := p.last.Lookup(byte(row))
	if !found || checkProjection(entry, p.space.Bits) != nil {
		return nil
	}
	return entry
}

// keep keeps the codes of an item, and makes what is lost of them as its revision does.
func (p *codePass) keep(it *verifiedItem, made *recomputedItem) error {
	for i, v := range p.targets {
		want := made.enc.In(i)
		if want.Code == nil {
			continue
		}
		x := v.rows.get(it.row)
		if stored := v.codes.of(x.number); stored == nil {
			x.number = v.codes.put(x.number, want.Code.AppendBytes(nil, p.space.Bits))
		} else if code := codec.NewCode(p.space.Bits); true {
			code.SetBytes(stored) // perhaps put there for another row, a moment ago
			if wrongBits(code, want.Code, made.fused[i]) > 0 {
				if err := v.give(it.row, want.Code.AppendBytes(nil, p.space.Bits), want.From, x.revision); err != nil {
					return err
				}
			}
		}
	}
	entry := p.projection(it.row)
	if want := made.enc.Projection; (entry == nil) != (want == nil) || entry != nil && !sameProjection(entry, want) {
		entry = want
	}
	if made.enc.HasCode() {
		p.done.CodesKept++
	}
	return p.stored(it.row, entry)
}

// replace gives an item the codes of the present revision, unless those that it has are of
// one that is not kept and can be right.
func (p *codePass) replace(it *verifiedItem, made *recomputedItem) error {
	if made.err != nil {
		p.uncodable.Add(it.row)
		p.bad(rowName("item", it.row), codec.NumberKey(codec.KindItem, p.ID, it.row), "no code can be made of what is stored of it: %s", fault.Problem(made.err))
		for _, v := range p.targets {
			v.take(it.row)
		}
		return nil
	}
	if p.uncoded(it.row, made) {
		return nil
	}
	if p.unchecked(it.row, made) {
		entry := p.projection(it.row)
		if made.enc.Projection == nil || entry == nil {
			entry = made.enc.Projection
		}
		p.done.CodesKept++
		return p.stored(it.row, entry)
	}
	for i, v := range p.targets {
		want := made.enc.In(i)
		if want.Code == nil {
			v.take(it.row)
			continue
		}
		if err := v.give(it.row, want.Code.AppendBytes(nil, p.space.Bits), want.From, p.space.Revision); err != nil {
			return err
		}
	}
	p.recode.Remove(it.row)
	if made.enc.HasCode() {
		p.done.CodesMade++
	}
	return p.stored(it.row, made.enc.Projection)
}

// stored counts an item and writes its projection.
func (p *codePass) stored(row uint32, projection []byte) error {
	if p.hasStored(row) {
		p.coded++
	}
	if projection == nil {
		return nil
	}
	return p.projections.Set(row, projection)
}

// uncoded reports whether an item without labels that count has no code because the
// revision in use when it was written gave none, as one does that has learned from
// nothing: then it gave no projection either. Where neither can be read any more it is
// taken to have had a code if more items had than are known.
func (p *codePass) uncoded(row uint32, made *recomputedItem) bool {
	if p.named.Contains(row) {
		return false
	}
	told := false
	for i, v := range p.targets {
		if made.enc.In(i).From == codec.ProvenanceLabels {
			return false
		}
		told = told || p.readable(v.Block(codec.KindRowCodes, row))
	}
	key := p.verifier.projectionKey(row)
	if told || p.readable(key) {
		return p.projection(row) == nil
	}
	for _, v := range p.targets {
		if p.lost.has(v.Block(codec.KindRowCodes, row)) {
			return false
		}
	}
	return !p.lost.has(key) && !p.untraced
}

// readable reports whether a block is there as it was.
func (p *codePass) readable(key []byte) bool {
	b, err := record.Get(p.verifier.snap, key)
	if err != nil || b == nil || p.lost.has(key) {
		return false
	}
	_, err = codec.DecodeBlock(b)
	return err == nil
}

// unchecked reports whether the codes of an item are of a revision that is not kept, and
// can be right.
func (p *codePass) unchecked(row uint32, made *recomputedItem) bool {
	revision := p.revision(row)
	if revision == 0 || p.kept[revision] != nil {
		return false
	}
	verifier := codeVerifier{spaceVerifier: p.verifier}
	for i, v := range p.targets {
		stored, x := v.stored(row)
		if (stored == nil) != (made.enc.In(i).Code == nil) {
			return false
		}
		verifier.CodeKeys, verifier.n = v.CodeKeys, codec.CodeCounters{NextCode: v.codes.next}
		if stored != nil && verifier.checkRowCode(row, codec.RowCode{Code: x.number, Provenance: x.from, Revision: x.revision}) != nil {
			return false
		}
		if stored != nil && made.enc.In(i).From == codec.ProvenanceLabels && x.from != codec.ProvenanceLabels && !p.recode.Contains(row) {
			return false
		}
	}
	return true
}
