package db

import (
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
)

// What is different in an index-only collection: without features only the codes of
// labels can be made again, and which modalities an item has stands in the sets of rows
// alone. Codes are kept as they are, therefore, and found again by what names them, as
// those of a collection of given codes are.

// seemsIndexOnly reports whether a collection whose descriptor is lost is index-only, by
// its records: it has a space, and nothing of what learning needs.
func (m *mender) seemsIndexOnly(d *record.Descriptor) (bool, error) {
	if len(m.collections[d.ID].spaces) == 0 || m.lostAny(codec.CollectionKey(codec.KindFeatures, d.ID)) {
		return false, nil
	}
	for _, kind := range []byte{codec.KindFeatures, codec.KindStatistics, codec.KindLessons, codec.KindOutbox} {
		some := false
		err := record.ForEach(m.store, codec.CollectionKey(kind, d.ID), func(_, _ []byte) error {
			some = true
			return nil
		})
		if some || err != nil {
			return false, err
		}
	}
	b, err := record.Get(m.store, codec.CollectionKey(codec.KindCounters, d.ID))
	if err != nil {
		return false, err
	}
	n, err := codec.DecodeCounters(b)
	return err != nil || !slices.ContainsFunc(n.Spaces, func(s codec.SpaceCounters) bool { return s.Checkpoint != 0 }), nil
}

// readKept reads the codes of all targets, and gives back codes that are stored elsewhere.
func (s *spaceMender) readKept() error {
	s.targets = nil
	for _, target := range s.space.Targets {
		v, err := s.readTwice(s.space.Keys(s.ID, target), s.n, carriedCode{state: carriedOnce})
		if err != nil {
			return err
		}
		s.targets = append(s.targets, v)
	}
	return nil
}

// keptCodes counts what has become of the codes of an index-only collection.
type keptCodes struct {
	lost    uint64 // items that lost a code
	guessed int    // whose revision or provenance was not known
	signs   int    // whose projection is that of their code
}

// keepStored keeps the codes of an item of an index-only collection; those of labels that
// are lost, or are others, are made again.
func (p *codePass) keepStored(row uint32) error {
	it, err := p.verifier.item(row)
	if err != nil {
		return err
	}
	q := p.space.Bits
	code, want := codec.NewCode(q), codec.NewCode(q)
	knownNow := p.space.Learned.LabelCode(code, it.labels)
	waits := p.waits(row)
	entry := p.projection(row)
	revision := uint32(0)
	for _, v := range p.targets {
		if _, x := v.stored(row); x.revision > 0 && uint64(x.revision) <= p.n.Revision {
			revision = max(revision, x.revision)
		}
	}
	made, guessed := p.kept[revision], revision == 0
	labelled := made != nil && made.Learned.LabelCode(want, it.labels)
	if guessed || knownNow && !labelled && p.breaks(row, made) { // all of one revision
		revision, made, labelled = p.space.Revision, p.space, knownNow
		p.space.Learned.LabelCode(want, it.labels)
	}
	if guessed && labelled && p.recode.Contains(row) && p.hasOther(row, want) {
		if r := p.before(it.labels); r > 0 {
			revision, made, labelled = r, p.kept[r], false
		}
	}
	anew, lost, standIn := false, false, entry
	guesses := false
	for _, v := range p.targets {
		named := v.names(row)
		stored, x := v.stored(row)
		if named {
			x = *v.rows.Get(row)
		}
		switch {
		case !p.expected(v, row):
			v.take(row)
			continue
		case labelled && (named || !waits):
			if stored != nil {
				code.SetBytes(stored)
			}
			if stored != nil && x.from == codec.ProvenanceLabels && x.revision == revision && slices.Equal(code, want) {
				continue
			}
			anew = true
			if stored == nil && named && x.number < record.MaxRows-1 { // it keeps its number
				v.codes.put(x.number, want.AppendBytes(nil, q))
			}
			if err := v.give(row, want.AppendBytes(nil, q), codec.ProvenanceLabels, revision); err != nil {
				return err
			}
			continue
		case stored == nil, made != nil && x.from == codec.ProvenanceLabels: // which the model does not know
			lost = lost || named || entry != nil
			v.take(row)
			continue
		}
		valid := x.from == codec.ProvenanceLabels || x.from == codec.ProvenanceFused ||
			x.from >= codec.ProvenanceModality && slices.Contains(p.space.Positions, int(x.from-codec.ProvenanceModality))
		if !valid {
			x.from = codec.ProvenanceFused
		}
		guesses = guesses || !valid || guessed
		x.revision = revision
		*v.rows.Put(row) = x
		if x.from != codec.ProvenanceLabels {
			if standIn == nil {
				standIn = signProjection(q, stored)
			}
			if knownNow {
				p.recode.Add(row)
			}
		}
	}
	if anew && made == p.space {
		p.recode.Remove(row)
	}
	if standIn != nil && !p.verifier.learnsFromRow(row) { // its labels made the code, and are lost
		standIn = nil
		for _, v := range p.targets {
			if stored, x := v.stored(row); stored != nil && x.from != codec.ProvenanceLabels {
				v.take(row)
				lost = true
			}
		}
	}
	switch {
	case lost:
		p.account.lost++
		p.bad(fmt.Sprintf("code of row %d", row), p.targets[0].Block(codec.KindRowCodes, row), "lost, and without features it cannot be made again: the item is kept")
	case anew:
		p.done.CodesMade++
	case p.hasStored(row):
		p.done.CodesKept++
	}
	if guesses {
		p.account.guessed++
	}
	if entry == nil && standIn != nil {
		p.account.signs++
	}
	return p.stored(row, standIn)
}

// waits reports whether an item has no code for any target until it is coded again.
func (p *codePass) waits(row uint32) bool {
	return p.recode.Contains(row) && !slices.ContainsFunc(p.targets, func(v *targetMender) bool { return v.names(row) })
}

// before returns the latest revision that is kept and did not know any of the labels, 0 if
// there is none.
func (p *codePass) before(labels []uint32) (latest uint32) {
	code := codec.NewCode(p.space.Bits)
	for revision, s := range p.kept {
		if !s.Learned.LabelCode(code, labels) {
			latest = max(latest, revision)
		}
	}
	return latest
}

// hasOther reports whether a row has another code for any target.
func (p *codePass) hasOther(row uint32, than codec.Code) bool {
	code := codec.NewCode(p.space.Bits)
	return slices.ContainsFunc(p.targets, func(v *targetMender) bool {
		stored, _ := v.stored(row)
		if stored != nil {
			code.SetBytes(stored)
		}
		return stored != nil && !slices.Equal(code, than)
	})
}

// names reports whether a row is known to have a code, whether or not that is there.
func (v *targetMender) names(row uint32) bool {
	x := v.rows.Get(row)
	return x != nil && x.state != carriedNone
}

// breaks reports whether a code of an item is lost, or of labels that the revision does
// not know; nil: it is not kept, and may have known them.
func (p *codePass) breaks(row uint32, made *spaces.Space) bool {
	waits := p.waits(row)
	return slices.ContainsFunc(p.targets, func(v *targetMender) bool {
		stored, x := v.stored(row)
		if stored == nil {
			named := v.names(row)
			return p.expected(v, row) && (named || !waits)
		}
		return made != nil && x.from == codec.ProvenanceLabels
	})
}

// expected reports whether an item may have a code for a target.
func (s *spaceMender) expected(v *targetMender, row uint32) bool {
	t, target := v.Modality()
	return !target || s.presence[t].Contains(row)
}

// signProjection returns the projection that has the signs of a code, and says no more.
func signProjection(bits int, stored []byte) []byte {
	code, z := codec.NewCode(bits), make([]float64, bits)
	code.SetBytes(stored)
	for j := range z {
		if z[j] = -1; code.Bit(j) {
			z[j] = 1
		}
	}
	return codec.AppendProjection(nil, z)
}

// reportKept reports what was guessed, and what is lost without a trace. had is how many
// items had a code, by the counters, named of how many rows it is known.
func (p *codePass) reportKept(had, named uint64) {
	codes, projections := p.prefix(codec.KindRowCodes), p.prefix(codec.KindProjection)
	if n := p.account.guessed; n > 0 {
		p.bad("codes of rows", codes, "lost for %d rows, whose codes are known: they are taken for codes of features, and of revision %d where nothing tells it", n, p.space.Revision)
	}
	if n := p.account.signs; n > 0 {
		p.bad("projections", projections, "%d are lost, and cannot be made again without features: the signs of the codes stand in for them", n)
	} else if p.lostAny(projections) {
		p.bad("projections", projections, "some may be lost of items whose codes are those of their labels: these count as having none")
	}
	if p.known && had > max(named, p.coded+p.account.lost) {
		p.bad("codes of rows", codes, "lost: %d items had codes, by the counters, and %d have", had, p.coded)
	}
}

// dropLearning deletes what an index-only collection does not have of a space, and keeps
// which rows wait for another code.
func (s *spaceMender) dropLearning() error {
	for _, kind := range []byte{codec.KindLessons, codec.KindOutbox, codec.KindStatistics} {
		if err := s.deleteAll(s.prefix(kind)); err != nil {
			return err
		}
	}
	s.pending.Clear()
	s.n.Taught, s.n.Checkpoint = 0, 0
	if s.space.Statistics == (record.Chunked{}) {
		return nil
	}
	d := s.space.Stored
	d.Statistics = record.Chunked{}
	return s.writeSpace(d, s.report)
}
