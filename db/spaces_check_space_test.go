package db_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/model"
)

// A spaceCheck is the check of one space of a collection.
type spaceCheck struct {
	*storedSpace
	c          *storedCollection
	d          *record.Descriptor
	n          codec.SpaceCounters
	bits       int
	trained    bool // and has not the projections of another space
	targets    []byte
	models     map[uint32]*model.Model // by revision, of those that are kept
	modalities []int
}

// whole puts chunks together, which have to be as they were written.
func whole(chunks map[uint32][]byte, first uint32, c record.Chunked) ([]byte, error) {
	var b []byte
	for i := range c.Chunks {
		b = append(b, chunks[first+i]...)
	}
	if int64(len(b)) != c.Bytes || len(chunks) != int(first+c.Chunks) {
		return nil, fmt.Errorf("%d chunks of together %d bytes, not %+v", len(chunks), len(b), c)
	}
	return b, nil
}

func (c *storedCollection) checkSpace(d *record.Descriptor, all codec.Counters, n codec.SpaceCounters) error {
	k := &spaceCheck{storedSpace: c.space(uint32(n.ID)), c: c, d: d, n: n, bits: d.Bits, targets: []byte{record.SharedTarget}, models: map[uint32]*model.Model{}}
	var desc spaces.Stored
	if err := json.Unmarshal(k.descriptor, &desc); err != nil {
		return err
	}
	if uint64(desc.ID) != n.ID || uint64(desc.ID) >= all.NextSpace || d.CodesOnly() && desc.Bits != d.Bits {
		return fmt.Errorf("descriptor %+v, next space %d", desc, all.NextSpace)
	}
	k.bits, k.trained = desc.Bits, desc.Parent == 0
	if !d.CodesOnly() {
		if err := k.readModels(desc); err != nil {
			return err
		}
		if err := k.checkOnline(); err != nil {
			return err
		}
		if err := k.checkStatistics(desc.Statistics); err != nil {
			return fmt.Errorf("statistics: %w", err)
		}
	} else if len(k.model)+len(k.statistics)+len(k.revisions)+len(k.online)+len(k.outbox)+len(k.lessons)+len(k.projections) > 0 {
		return errors.New("a model of codes that the items bring")
	}
	if len(n.Sets) != len(k.targets) {
		return fmt.Errorf("%d counted views, not %d", len(n.Sets), len(k.targets))
	}
	for v := range k.storedSpace.targets {
		if !slices.Contains(k.targets, v) {
			return fmt.Errorf("keys of view %d, views are %v", v, k.targets)
		}
	}
	codes := map[byte]map[uint32][]byte{}
	for i, v := range k.targets {
		if n.Sets[i].View != v {
			return fmt.Errorf("view %d is counted as %d", v, n.Sets[i].View)
		}
		var err error
		if codes[v], err = k.checkSet(k.target(v), n.Sets[i]); err != nil {
			return fmt.Errorf("view %d: %w", v, err)
		}
	}
	coded := roaring.New()
	for _, of := range codes {
		for row := range of {
			if coded.Add(row); !c.live.Contains(row) {
				return fmt.Errorf("row %d has a code and no item", row)
			}
		}
	}
	if coded.GetCardinality() != n.Coded {
		return fmt.Errorf("%d rows have a code, %d are counted", coded.GetCardinality(), n.Coded)
	}
	for row := range k.projections {
		if !c.live.Contains(row) {
			return fmt.Errorf("row %d has a projection and no item", row)
		}
	}
	for row, rec := range c.items {
		own := map[byte][]byte{}
		for v, of := range codes {
			if of[row] != nil {
				own[v] = of[row]
			}
		}
		if d.CodesOnly() {
			if len(own) != 1 || k.target(record.SharedTarget).rowCodes[row].Provenance != codec.ProvenanceGiven {
				return fmt.Errorf("codes %x of row %d", own, row)
			}
			continue
		}
		if err := k.checkRow(row, rec, own); err != nil {
			return fmt.Errorf("row %d (%s): %w", row, c.keys[row], err)
		}
	}
	return nil
}

// readModels reads the model and its revisions.
func (k *spaceCheck) readModels(desc spaces.Stored) error {
	b, err := whole(k.model, 0, desc.Model)
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	m, err := model.Unmarshal(b)
	if err != nil {
		return err
	}
	if k.modalities, err = k.d.Match(m); err != nil {
		return err
	}
	if m.Views() == model.ViewsTarget {
		k.targets = nil
		for _, t := range k.modalities {
			k.targets = append(k.targets, byte(1+t))
		}
	}
	k.models[1] = m
	if k.revisions[1] == nil {
		return errors.New("the first revision has no descriptor")
	}
	for revision, chunks := range k.revisions {
		var desc spaces.RevisionDescriptor
		if err := json.Unmarshal(chunks[0], &desc); err != nil {
			return fmt.Errorf("revision %d: %w", revision, err)
		}
		if desc.Revision != revision || uint64(revision) > k.n.Revision || revision > 1 && desc.Parent >= revision {
			return fmt.Errorf("revision %d of %d: %+v", revision, k.n.Revision, desc)
		}
		b, err := whole(chunks, 1, desc.Model)
		if err != nil {
			return fmt.Errorf("revision %d: %w", revision, err)
		}
		if revision > 1 {
			if k.models[revision], err = m.UnmarshalRevision(b); err != nil {
				return fmt.Errorf("revision %d: %w", revision, err)
			}
		}
	}
	if k.models[uint32(k.n.Revision)] == nil {
		return fmt.Errorf("revision %d, which is in use, is not there", k.n.Revision)
	}
	return nil
}

// checkOnline checks the sets of rows of the online step.
func (k *spaceCheck) checkOnline() error {
	having := roaring.New()
	for _, t := range k.modalities {
		if rows := k.c.presence[uint32(t)]; rows != nil {
			having.Or(rows)
		}
	}
	taught := roaring.New()
	for row, entry := range k.lessons {
		taught.Add(row)
		l, err := codec.DecodeLesson(k.bits, entry)
		if err != nil {
			return err
		}
		if n := len(l.Codes) / codec.Bytes(k.bits); n != 1 && n != len(k.modalities) || l.Revision == 0 || uint64(l.Revision) > k.n.Revision {
			return fmt.Errorf("lesson of row %d: %d codes, revision %d of %d", row, n, l.Revision, k.n.Revision)
		}
		if !having.Contains(row) {
			return fmt.Errorf("row %d has taught, and has nothing to teach with", row)
		}
	}
	if taught.GetCardinality() != k.n.Taught {
		return fmt.Errorf("%d rows have taught, %d are counted", taught.GetCardinality(), k.n.Taught)
	}
	pending, recode := roaring.New(), roaring.New()
	for set, rows := range k.online {
		switch set {
		case codec.SetPending:
			pending = rows
		case codec.SetRecode:
			recode = rows
		default:
			return fmt.Errorf("rows in set %d", set)
		}
	}
	if both := roaring.And(pending, taught); !both.IsEmpty() {
		return fmt.Errorf("rows %v have taught and wait for it", both)
	}
	if none := roaring.AndNot(pending, having); !none.IsEmpty() {
		return fmt.Errorf("rows %v wait, and have nothing to teach with", none)
	}
	if none := roaring.AndNot(recode, k.c.live); !none.IsEmpty() {
		return fmt.Errorf("rows %v are to be given new codes, and have no item", none)
	}
	if k.trained && k.n.Revision == 1 && !roaring.Or(pending, taught).Equals(having) {
		return fmt.Errorf("of rows %v, there has been no update and %v do not wait", having, roaring.AndNot(having, roaring.Or(pending, taught)))
	}
	for number := range k.outbox {
		if number >= k.n.NextOutbox {
			return fmt.Errorf("number %d is in the outbox, the next one is %d", number, k.n.NextOutbox)
		}
	}
	return nil
}

// checkSet checks that what stands of a code set is in step, and returns the codes by
// row.
func (k *spaceCheck) checkSet(v *storedTarget, n codec.CodeCounters) (map[uint32][]byte, error) {
	codes, numbers := map[uint32][]byte{}, map[uint32]uint32{}
	seen := map[string]uint32{}
	postings := map[[2]uint32][]uint32{}
	for _, number := range slices.Sorted(maps.Keys(v.codes)) {
		code := codec.NewCode(k.bits)
		row, err := codec.DecodeCodeEntry(code, k.bits, v.codes[number])
		if err != nil {
			return nil, err
		}
		b := code.AppendBytes(nil, k.bits)
		if other, twice := seen[string(b)]; twice || uint64(number) >= n.NextCode {
			return nil, fmt.Errorf("code %x has number %d (of %d), and %d", b, number, n.NextCode, other)
		}
		seen[string(b)] = number
		rows := []uint32{row}
		if many := v.many[number]; row == codec.ManyRows {
			if many == nil || many.GetCardinality() < 2 {
				return nil, fmt.Errorf("code number %d has many rows: %v", number, many)
			}
			rows = many.ToArray()
		} else if many != nil {
			return nil, fmt.Errorf("code number %d has row %d, and rows %v", number, row, many)
		}
		for _, row := range rows {
			if codes[row] != nil {
				return nil, fmt.Errorf("row %d has code numbers %d and %d", row, numbers[row], number)
			}
			codes[row], numbers[row] = b, number
		}
		// Substrings of 16 bits or one less, the longer ones first.
		tables := (k.bits + 15) / 16
		for table, from := 0, 0; table < tables; table++ {
			width := k.bits / tables
			if table < k.bits%tables {
				width++
			}
			value := uint32(0)
			for j := range width {
				if code.Bit(from + j) {
					value |= 1 << j
				}
			}
			at := [2]uint32{uint32(table), value}
			postings[at] = append(postings[at], number)
			from += width
		}
	}
	for number := range v.many {
		if v.codes[number] == nil {
			return nil, fmt.Errorf("rows of code number %d, which is none", number)
		}
	}
	if len(v.codes) != int(n.Codes) || len(codes) != int(n.Coded) || len(v.rowCodes) != len(codes) {
		return nil, fmt.Errorf("%d codes of %d rows, %d rows have one, counted are %+v", len(v.codes), len(codes), len(v.rowCodes), n)
	}
	for row, rc := range v.rowCodes {
		if has, ok := numbers[row]; !ok || has != rc.Code {
			return nil, fmt.Errorf("row %d has code number %d, and is among the rows of %d (%v)", row, rc.Code, has, ok)
		}
	}
	if !maps.EqualFunc(postings, v.postings, slices.Equal[[]uint32]) {
		return nil, fmt.Errorf("%d postings, not %d, or others", len(v.postings), len(postings))
	}
	return codes, nil
}

// vectors returns features as the model takes them.
func (k *spaceCheck) vectors(features map[uint16][]byte) ([]model.Vector, error) {
	x := make([]model.Vector, len(k.modalities))
	for i, t := range k.modalities {
		if record := features[uint16(t)]; record != nil {
			if err := k.d.Modalities[t].DecodeVector(&x[i], record); err != nil {
				return nil, err
			}
		}
	}
	return x, nil
}

// checkRow checks that a row has the codes and the projection that it must have.
func (k *spaceCheck) checkRow(row uint32, rec *codec.ItemRecord, own map[byte][]byte) error {
	x, err := k.vectors(k.c.features[row])
	if err != nil {
		return err
	}
	missing := len(own) == 0 && k.projections[row] == nil
	if k.n.Building && uint64(row) >= k.n.Built && missing {
		return nil // its turn comes
	}
	if waiting := k.online[codec.SetRecode]; waiting != nil && waiting.Contains(row) {
		return nil
	}
	latest := k.models[uint32(k.n.Revision)]
	label := codec.NewCode(k.bits)
	labelled := latest.LabelCode(label, rec.Labels)
	m := latest
	for v := range own {
		rc := k.target(v).rowCodes[row]
		if rc.Revision == 0 || uint64(rc.Revision) > k.n.Revision {
			return fmt.Errorf("code of revision %d", rc.Revision)
		}
		if m != latest && m != k.models[rc.Revision] {
			return errors.New("codes of several revisions")
		}
		m = k.models[rc.Revision]
		if (rc.Provenance == codec.ProvenanceLabels) != labelled {
			return fmt.Errorf("provenance %d, it has a label that counts: %v", rc.Provenance, labelled)
		}
		if labelled && !bytes.Equal(own[v], label.AppendBytes(nil, k.bits)) {
			return fmt.Errorf("code %x, that of the labels is %x", own[v], label.AppendBytes(nil, k.bits))
		}
	}
	if m == nil {
		return nil // that revision is not kept
	}
	codes, sum, err := codesOf(m, rec.Labels, x)
	if err != nil {
		return err
	}
	if labelled { // by a label that is known since that revision, perhaps
		codes, _, err = codesOf(latest, rec.Labels, x)
		if err != nil {
			return err
		}
	}
	want := map[byte][]byte{}
	for name, code := range codes {
		target := byte(record.SharedTarget)
		if name != "" {
			t, err := k.d.ModalityOf(name)
			if err != nil {
				return err
			}
			target = record.TargetOf(t)
		}
		want[target] = code
	}
	if !maps.EqualFunc(own, want, bytes.Equal) {
		return fmt.Errorf("codes %x, not %x", own, want)
	}
	var projection []byte
	if !spaces.IsZero(sum) {
		projection = codec.AppendProjection(nil, sum)
	}
	if !bytes.Equal(projection, k.projections[row]) {
		return fmt.Errorf("projection %x, not %x", k.projections[row], projection)
	}
	return nil
}
