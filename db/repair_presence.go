package db

import (
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/model"
)

// Which modalities an item of an index-only collection has stands in sets of rows, and
// nowhere else. Where some of these are lost, codes and projections bear witness.

// A presenceMender is what the records of an index-only collection say of the modalities
// of its items.
type presenceMender struct {
	*collectionMender
	told      []*roaring.Bitmap // by modality: rows of which a code, or what stands beside one, says that they have it
	whole     []bool            // there are codes for that target: what has none lacks the modality
	learned   []bool            // a model knows it
	projected *roaring.Bitmap   // rows that have a projection
	made      []madeOfFeatures
}

// madeOfFeatures are the rows with a code or a projection that the model of a space has
// made of their features: each has one of the modalities at least.
type madeOfFeatures struct {
	rows       *roaring.Bitmap
	modalities []int
}

// keepPresence is mendFeatures for an index-only collection: the modalities of an item are
// those that the sets tell, and those that its codes do. Where a set is lost and codes do
// not tell, items with a projection are taken to have the modality; and an item whose
// code or projection was made of features that nothing names, to have had all that the
// model knows.
func (c *collectionMender) keepPresence() error {
	if err := c.deleteAll(codec.CollectionKey(codec.KindFeatures, c.ID)); err != nil {
		return err
	}
	n := len(c.Modalities)
	p := &presenceMender{
		collectionMender: c, told: make([]*roaring.Bitmap, n), whole: make([]bool, n), learned: make([]bool, n), projected: roaring.New(),
	}
	for t, rows := range c.had {
		rows.And(c.items)
		c.presence[t], p.told[t] = rows.Clone(), roaring.New()
	}
	for _, space := range c.spaceIDs() {
		if err := errors.Join(p.hear(space), p.ctx.Err()); err != nil {
			return err
		}
	}
	p.decide()
	return nil
}

// hear reads what the records of a space say.
func (p *presenceMender) hear(space uint32) error {
	trained, modalities := p.modelOf(space)
	made := madeOfFeatures{roaring.New(), modalities}
	for _, t := range modalities {
		p.learned[t] = true
	}
	p.made = append(p.made, made)
	coded, err := p.readRowCodes(space, made.rows)
	if err == nil && trained != nil {
		err = p.readClaims(space, trained, coded, made.rows)
	}
	if err != nil {
		return err
	}
	return p.blocks(codec.NumberKey(codec.KindProjection, p.ID, space), func(_ []byte, first uint32, b codec.Block) error {
		for i := range b.Len() {
			if row := first + uint32(b.Offset(i)); p.items.Contains(row) {
				p.projected.Add(row)
				made.rows.Add(row)
			}
		}
		return nil
	})
}

// modelOf returns the model of a space, of its present revision where that can be read, and
// the modalities that it knows; nil where it is lost.
func (p *presenceMender) modelOf(space uint32) (*model.Model, []int) {
	s, err := spaces.Read(p.store, p.Descriptor, space, 1)
	if err == nil {
		for _, n := range p.counters.Spaces {
			if n.ID == uint64(space) && n.Revision > 1 {
				if revised, err := spaces.ReadRevision(p.store, p.ID, s, uint32(n.Revision)); err == nil {
					return revised, s.Positions // which may know more labels
				}
			}
		}
		return s.Learned, s.Positions
	}
	if m := p.storedModel(p.ID, space); m != nil {
		if modalities, err := p.Match(m); err == nil {
			return m, modalities
		}
	}
	return nil, nil
}

// readRowCodes reads which codes rows have, and returns by target which rows have one.
func (p *presenceMender) readRowCodes(space uint32, made *roaring.Bitmap) (coded map[byte]*roaring.Bitmap, err error) {
	coded = map[byte]*roaring.Bitmap{}
	err = p.blocks(codec.NumberKey(codec.KindRowCodes, p.ID, space), func(key []byte, first uint32, b codec.Block) error {
		target := key[9]
		if coded[target] == nil {
			coded[target] = roaring.New()
		}
		t, has := record.CodeKeys{Target: target}.Modality()
		if has = has && t < len(p.told); has {
			p.whole[t] = true
		}
		for i := range b.Len() {
			row := first + uint32(b.Offset(i))
			rc, err := codec.DecodeRowCode(b.Entry(i))
			if err != nil || !p.items.Contains(row) {
				continue
			}
			coded[target].Add(row)
			if has {
				p.told[t].Add(row)
			}
			if from := int(rc.Provenance) - int(codec.ProvenanceModality); from >= 0 && from < len(p.told) {
				p.told[from].Add(row)
			}
			if rc.Provenance != codec.ProvenanceLabels {
				made.Add(row)
			}
		}
		return nil
	})
	return coded, err
}

// readClaims reads which rows stand beside codes, and do not say themselves which code
// they have.
func (p *presenceMender) readClaims(space uint32, trained *model.Model, coded map[byte]*roaring.Bitmap, made *roaring.Bitmap) error {
	code := codec.NewCode(trained.Bits())
	claim := func(target byte, row uint32) error {
		if !p.items.Contains(row) || coded[target] != nil && coded[target].Contains(row) {
			return nil
		}
		if t, target := (record.CodeKeys{Target: target}).Modality(); target {
			if t < len(p.told) && !p.parts[t].Contains(row>>16) {
				p.told[t].Add(row)
			}
			return nil
		}
		rec, err := record.ReadItem(p.store, p.ID, row)
		if err == nil && !trained.LabelCode(code, rec.Labels) {
			made.Add(row)
		}
		return err
	}
	err := p.blocks(codec.NumberKey(codec.KindCodes, p.ID, space), func(key []byte, _ uint32, b codec.Block) error {
		for i := range b.Len() {
			row, err := codec.DecodeCodeEntry(code, trained.Bits(), b.Entry(i))
			if err != nil || row == codec.ManyRows {
				continue
			}
			if err := claim(key[9], row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return record.ForEach(p.store, codec.NumberKey(codec.KindCodeRows, p.ID, space), func(key, value []byte) error {
		l, err := codec.DecodeLayer(value)
		if err != nil {
			return nil
		}
		_, container := codec.CodeRowsKeyParts(key)
		for it := l.Added.Iterator(); it.HasNext(); {
			if err := claim(key[9], uint32(container)<<16|it.Next()); err != nil {
				return err
			}
		}
		return nil
	})
}

// decide decides which items have which modality, and reports what is not known.
func (p *presenceMender) decide() {
	lost := make([]bool, len(p.told))
	bare := p.projected.Clone() // rows that must have a modality, and none is known
	for t, rows := range p.told {
		prefix := codec.RowsPrefix(p.ID, codec.SetModality, uint32(t))
		missed := roaring.AndNot(rows, p.had[t])
		for it := missed.Iterator(); it.HasNext(); {
			p.parts[t].Remove(it.Next() >> 16)
		}
		lost[t] = p.lostAny(prefix) || !missed.IsEmpty()
		p.presence[t].Or(rows)
		bare.AndNot(p.presence[t])
	}
	guessed := make([]*roaring.Bitmap, len(p.told))
	for t := range p.told {
		guessed[t] = roaring.New()
		lost[t] = lost[t] || !bare.IsEmpty() && p.had[t].IsEmpty() && p.learned[t]
		if lost[t] && p.learned[t] && !p.whole[t] {
			guessed[t].Or(roaring.AndNot(p.projected, p.presence[t]))
			for it := p.parts[t].Iterator(); it.HasNext(); { // which tell who has it not
				part := uint64(it.Next()) << 16
				guessed[t].RemoveRange(part, part+1<<16)
			}
			p.presence[t].Or(guessed[t])
		}
	}
	for _, made := range p.made {
		rows := roaring.AndNot(made.rows, unionOf(p.presence, made.modalities))
		for _, t := range made.modalities {
			p.presence[t].Or(rows)
			guessed[t].Or(rows)
		}
	}
	for t, m := range p.Modalities {
		guess := ""
		if n := guessed[t].GetCardinality(); n > 0 {
			guess = fmt.Sprintf(", and %d whose vectors are not known are taken to have it", n)
		} else if !lost[t] {
			continue
		}
		p.bad(fmt.Sprintf("rows with modality %q", m.Name), codec.RowsPrefix(p.ID, codec.SetModality, uint32(t)),
			"lost, some or all of them: those whose codes tell it have it%s", guess)
	}
}
