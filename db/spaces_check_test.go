package db_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/model"
)

// checkSpaces reads a store from one end to the other and compares what stands in it
// of collections and their spaces with what has to follow from the items, the models
// and the counters. For that it uses the encodings of values, and nothing that the
// database holds in memory, which then has to say the same.
func checkSpaces(t fataler, d *db.DB) {
	t.Helper()
	if err := inconsistency(d); err != nil {
		t.Fatal(err)
	}
}

// looks counts the databases that checkSpaces has looked at.
var looks int

// inconsistency returns the first thing that checkSpaces, or, of one in eight, Verify does
// not like.
func inconsistency(d *db.DB) error {
	v, done, err := db.State(d).Acquire()
	if err != nil {
		return err
	}
	defer done()
	all := map[uint32]*storedCollection{}
	err = record.ForEach(v.Snap, nil, func(key, value []byte) error {
		if key[0] == codec.KindDatabase || key[0] == codec.KindName || codec.EmptySum(key, value) {
			return nil
		}
		id := binary.BigEndian.Uint32(key[1:])
		if all[id] == nil {
			all[id] = newStoredCollection()
		}
		if err := all[id].read(slices.Clone(key), slices.Clone(value)); err != nil {
			return fmt.Errorf("key %x: %w", key, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for id, c := range all {
		if err := c.check(id); err != nil {
			return fmt.Errorf("collection %d: %w", id, err)
		}
		cv, _ := v.Collections.Get(id)
		if err := c.checkMemory(cv); err != nil {
			return fmt.Errorf("collection %d in memory: %w", id, err)
		}
	}
	tables := state.TableBytes{}
	for set := range v.Sets() {
		tables.Add([]state.CodeSetView{*set})
	}
	if tables != v.Tables {
		return fmt.Errorf("tables of substrings of %+v bytes, %+v are known", tables, v.Tables)
	}
	if looks++; looks%8 != 0 { // it takes longer than all of that
		return nil
	}
	var first error
	unreadable := false // in a test that makes reading fail
	_, err = d.Verify(ctx, db.VerifyOptions{Deep: true}, func(f db.Finding) error {
		unreadable = unreadable || strings.Contains(f.Problem, dbkit.ErrInjected.Error())
		if first == nil {
			first = errors.New(f.String())
		}
		return nil
	})
	if unreadable {
		return nil // other findings may follow from that
	}
	return errors.Join(err, first)
}

// checkMemory compares what is held in memory with what is stored.
func (c *storedCollection) checkMemory(cv *state.CollectionView) error {
	n, _ := codec.DecodeCounters(c.counters)
	if !cv.Live.Equals(c.live) || cv.Items != len(c.items) || cv.NextRow != n.NextRow || len(cv.Spaces) != len(n.Spaces) {
		return fmt.Errorf("%d items, %d spaces", cv.Items, len(cv.Spaces))
	}
	if active := cv.SpaceNumber(uint32(n.ActiveSpace)); n.ActiveSpace != 0 && (active == nil || cv.Space != active.Space) || n.ActiveSpace == 0 && cv.Space != nil {
		return fmt.Errorf("space %d is not the active one", n.ActiveSpace)
	}
	for i, sv := range cv.Spaces {
		s := c.space(sv.Space.ID)
		if got, want := fmt.Sprintf("%+v", sv.Numbers), fmt.Sprintf("%+v", n.Spaces[i]); got != want {
			return fmt.Errorf("space %d is counted as %s, not %s", sv.Space.ID, got, want)
		}
		for set, rows := range map[byte]*roaring.Bitmap{codec.SetPending: sv.Pending, codec.SetRecode: sv.Recode} {
			if !rows.Equals(bitmapIn(s.online, set)) {
				return fmt.Errorf("set %d of space %d: %v, not %v", set, sv.Space.ID, rows, s.online[set])
			}
		}
		for _, set := range sv.Sets {
			if set.Table == nil {
				continue
			}
			stored := s.target(set.Target)
			if set.Table.Items() != len(stored.rowCodes) || set.Table.Distinct() != len(stored.codes) {
				return fmt.Errorf("space %d, view %d: %d codes of %d rows", sv.Space.ID, set.Target, set.Table.Distinct(), set.Table.Items())
			}
			for row, rc := range stored.rowCodes {
				code := codec.NewCode(set.Bits)
				if n, has := set.Table.CodeOf(row); !has || n != rc.Code {
					return fmt.Errorf("space %d, view %d: row %d has code number %d (%v), not %d", sv.Space.ID, set.Target, row, n, has, rc.Code)
				}
				if _, err := codec.DecodeCodeEntry(code, set.Bits, stored.codes[rc.Code]); err != nil || !slices.Equal(code, set.Table.Code(rc.Code)) {
					return fmt.Errorf("space %d, view %d: code number %d is %x, not %x", sv.Space.ID, set.Target, rc.Code, set.Table.Code(rc.Code), code)
				}
			}
		}
	}
	return nil
}

// A storedCollection is all that a store holds of a collection, by kind.
type storedCollection struct {
	descriptor []byte
	counters   []byte
	labels     map[uint32]string
	rows       map[string]uint32 // by key
	keys       map[uint32]string // by row
	items      map[uint32]*codec.ItemRecord
	features   map[uint32]map[uint16][]byte
	live       *roaring.Bitmap
	presence   map[uint32]*roaring.Bitmap
	labelled   map[uint32]*roaring.Bitmap
	spaces     map[uint32]*storedSpace
}

func newStoredCollection() *storedCollection {
	return &storedCollection{
		labels: map[uint32]string{}, rows: map[string]uint32{}, keys: map[uint32]string{},
		items: map[uint32]*codec.ItemRecord{}, features: map[uint32]map[uint16][]byte{},
		live: roaring.New(), presence: map[uint32]*roaring.Bitmap{}, labelled: map[uint32]*roaring.Bitmap{},
		spaces: map[uint32]*storedSpace{},
	}
}

// A storedSpace is all that a store holds of a space.
type storedSpace struct {
	descriptor  []byte
	model       map[uint32][]byte // by chunk
	statistics  map[uint32][]byte
	revisions   map[uint32]map[uint32][]byte
	online      map[byte]*roaring.Bitmap
	outbox      map[uint64][]byte
	lessons     map[uint32][]byte
	projections map[uint32][]byte
	targets     map[byte]*storedTarget
}

// A storedTarget is all that a store holds of a code set.
type storedTarget struct {
	rowCodes map[uint32]codec.RowCode
	codes    map[uint32][]byte // entries
	many     map[uint32]*roaring.Bitmap
	postings map[[2]uint32][]uint32 // by table and value
}

func (c *storedCollection) space(id uint32) *storedSpace {
	if c.spaces[id] == nil {
		c.spaces[id] = &storedSpace{
			model: map[uint32][]byte{}, statistics: map[uint32][]byte{}, revisions: map[uint32]map[uint32][]byte{},
			online: map[byte]*roaring.Bitmap{}, outbox: map[uint64][]byte{}, lessons: map[uint32][]byte{},
			projections: map[uint32][]byte{}, targets: map[byte]*storedTarget{},
		}
	}
	return c.spaces[id]
}

func (s *storedSpace) target(v byte) *storedTarget {
	if s.targets[v] == nil {
		s.targets[v] = &storedTarget{
			rowCodes: map[uint32]codec.RowCode{}, codes: map[uint32][]byte{}, many: map[uint32]*roaring.Bitmap{},
			postings: map[[2]uint32][]uint32{},
		}
	}
	return s.targets[v]
}

// bitmapIn returns the bitmap under a key, making it.
func bitmapIn[K comparable](m map[K]*roaring.Bitmap, key K) *roaring.Bitmap {
	if m[key] == nil {
		m[key] = roaring.New()
	}
	return m[key]
}

// read takes over what stands under a key.
func (c *storedCollection) read(key, value []byte) (err error) {
	number := func() uint32 { return binary.BigEndian.Uint32(key[5:]) }
	entries := func(f func(n uint32, entry []byte) error) error {
		b, err := codec.DecodeBlock(value)
		for i := 0; err == nil && i < b.Len(); i++ {
			err = f(binary.BigEndian.Uint32(key[len(key)-4:])*codec.BlockRows+uint32(b.Offset(i)), b.Entry(i))
		}
		return err
	}
	into := func(m map[uint32][]byte) error {
		return entries(func(n uint32, entry []byte) error { m[n] = slices.Clone(entry); return nil })
	}
	layer := func(into *roaring.Bitmap) error {
		l, err := codec.DecodeLayer(value)
		if err == nil {
			for _, low := range l.Added.ToArray() {
				into.Add(uint32(binary.BigEndian.Uint16(key[len(key)-2:]))<<16 | low)
			}
		}
		return err
	}
	switch key[0] {
	case codec.KindCollection:
		c.descriptor = value
	case codec.KindCounters:
		c.counters = value
	case codec.KindLabel:
		c.labels[number()] = string(value)
	case codec.KindKey:
		c.rows[string(key[5:])] = binary.BigEndian.Uint32(value)
	case codec.KindItem:
		c.items[number()], err = codec.DecodeItemRecord(value)
	case codec.KindFeatures:
		row, t := codec.FeatureKeyParts(key)
		if c.features[row] == nil {
			c.features[row] = map[uint16][]byte{}
		}
		c.features[row][t] = value
	case codec.KindRowKeys:
		return entries(func(row uint32, entry []byte) error { c.keys[row] = string(entry); return nil })
	case codec.KindRows:
		switch set, id, _ := codec.RowsKeyParts(key); {
		case set == codec.SetLive && id == 0:
			return layer(c.live)
		case set == codec.SetModality:
			return layer(bitmapIn(c.presence, id))
		case set == codec.SetLabel:
			return layer(bitmapIn(c.labelled, id))
		default:
			return errors.New("unknown set")
		}
	case codec.KindFieldRows: // the tests of filters look at them
	case codec.KindSpace:
		c.space(number()).descriptor = value
	case codec.KindModel:
		c.space(number()).model[codec.LastNumber(key)] = value
	case codec.KindStatistics:
		c.space(number()).statistics[codec.LastNumber(key)] = value
	case codec.KindRevision:
		s := c.space(number())
		revision, chunk := codec.RevisionKeyParts(key)
		if s.revisions[revision] == nil {
			s.revisions[revision] = map[uint32][]byte{}
		}
		s.revisions[revision][chunk] = value
	case codec.KindOnlineRows:
		set, _ := codec.OnlineRowsKeyParts(key)
		return layer(bitmapIn(c.space(number()).online, set))
	case codec.KindOutbox:
		c.space(number()).outbox[codec.OutboxNumber(key)] = value
	case codec.KindLessons:
		return into(c.space(number()).lessons)
	case codec.KindRowCodes:
		v := c.space(number()).target(key[9])
		return entries(func(row uint32, entry []byte) error {
			v.rowCodes[row], err = codec.DecodeRowCode(entry)
			return err
		})
	case codec.KindCodes:
		return into(c.space(number()).target(key[9]).codes)
	case codec.KindCodeRows:
		code, _ := codec.CodeRowsKeyParts(key)
		return layer(bitmapIn(c.space(number()).target(key[9]).many, code))
	case codec.KindProjection:
		if key[9] != record.SharedTarget {
			return errors.New("a projection of a view")
		}
		return into(c.space(number()).projections)
	case codec.KindSubstring:
		table, value32 := codec.SubstringKeyParts(key)
		v := c.space(number()).target(key[9])
		at := [2]uint32{uint32(table), value32}
		v.postings[at], err = codec.AppendPostingCodes(nil, value)
	default:
		return errors.New("unknown kind")
	}
	return err
}

func (c *storedCollection) check(id uint32) error {
	d, err := record.DecodeDescriptor(c.descriptor)
	if err != nil {
		return err
	}
	n, err := codec.DecodeCounters(c.counters)
	if err != nil {
		return err
	}
	if err := c.checkItems(d, n); err != nil {
		return err
	}
	building := 0
	ids := map[uint32]bool{}
	for _, s := range n.Spaces {
		ids[uint32(s.ID)] = true
		if s.Building {
			building++
			if s.ID == n.ActiveSpace || s.ID == n.PreviousSpace {
				return fmt.Errorf("space %d is being built, and was active", s.ID)
			}
		} else if s.Activate || s.Built != 0 {
			return fmt.Errorf("space %d is complete, and there is something to be done: %+v", s.ID, s)
		}
	}
	if building > 1 || n.ActiveSpace != 0 && !ids[uint32(n.ActiveSpace)] || n.PreviousSpace != 0 && !ids[uint32(n.PreviousSpace)] ||
		n.ActiveSpace != 0 && n.ActiveSpace == n.PreviousSpace {
		return fmt.Errorf("%d spaces are being built, or the active or previous one is none: %+v", building, n)
	}
	for id := range c.spaces {
		if !ids[id] {
			return fmt.Errorf("there are keys of space %d, of which the counters know nothing", id)
		}
	}
	for _, s := range n.Spaces {
		if err := c.checkSpace(d, n, s); err != nil {
			return fmt.Errorf("space %d: %w", s.ID, err)
		}
	}
	return nil
}

// checkItems checks what is kept of items but for their codes.
func (c *storedCollection) checkItems(d *record.Descriptor, n codec.Counters) error {
	if len(c.items) != int(n.Items) || len(c.rows) != len(c.items) || len(c.keys) != len(c.items) || c.live.GetCardinality() != n.Items {
		return fmt.Errorf("%d items, %d rows, %d keys, %d live, %d counted", len(c.items), len(c.rows), len(c.keys), c.live.GetCardinality(), n.Items)
	}
	for key, row := range c.rows {
		if c.keys[row] != key || c.items[row] == nil || !c.live.Contains(row) || uint64(row) >= n.NextRow {
			return fmt.Errorf("item %q in row %d, whose key is %q, live: %v, next row %d", key, row, c.keys[row], c.live.Contains(row), n.NextRow)
		}
	}
	presence, labelled := map[uint32]*roaring.Bitmap{}, map[uint32]*roaring.Bitmap{}
	for row, x := range c.features {
		for t, record := range x {
			bitmapIn(presence, uint32(t)).Add(row)
			if c.items[row] == nil || int(t) >= len(d.Modalities) {
				return fmt.Errorf("features %d of row %d", t, row)
			}
			if err := d.Modalities[t].DecodeVector(&model.Vector{}, record); err != nil {
				return err
			}
		}
	}
	for row, rec := range c.items {
		for _, l := range rec.Labels {
			if bitmapIn(labelled, l).Add(row); c.labels[l] == "" {
				return fmt.Errorf("row %d has label %d", row, l)
			}
		}
	}
	same := func(a, b map[uint32]*roaring.Bitmap) bool {
		return maps.EqualFunc(a, b, func(x, y *roaring.Bitmap) bool { return x.Equals(y) })
	}
	if !same(presence, c.presence) || !same(labelled, c.labelled) {
		return fmt.Errorf("rows by modality %v, not %v, or by label %v, not %v", c.presence, presence, c.labelled, labelled)
	}
	return nil
}

// Whatever is taken away of a collection and its spaces, checkSpaces notices.
func TestChecksOfSpacesNotice(t *testing.T) {
	dbkit.LongTest(t)
	w := newWorld(t, dbkit.PairsSchema, true)
	items := dbkit.ViewItems(60, 2)
	w.put(items[:50])
	dbkit.MustTrain(t, w.c, dbkit.TinyTraining(1, model.ViewsTarget))
	dbkit.MustTrain(t, w.c, dbkit.TinyTraining(2, model.ViewsShared))
	w.put(items[45:])
	if _, err := w.c.Delete(ctx, "k2", "k4"); err != nil {
		t.Fatal(err)
	}
	w.reopen() // so that every key has its value whole
	checkSpaces(t, w.d)
	noticed, n := map[byte]int{}, 0
	for key := range storeKeys(t, w.d) {
		if n++; !dbkit.Sampled(n, 3) {
			continue
		}
		value, err := record.Get(db.State(w.d).Engine.DB, key)
		if err != nil {
			t.Fatal(err)
		}
		if key[0] <= codec.KindName || key[0] == codec.KindFieldRows || codec.EmptySum(key, value) {
			continue
		}
		look := func() error {
			err := db.State(w.d).Committer.Show(ctx, func() error { return nil })
			return errors.Join(err, inconsistency(w.d))
		}
		if err := db.State(w.d).Engine.DB.Delete(key, nil); err != nil {
			t.Fatal(err)
		}
		if look() == nil {
			t.Errorf("key %x is gone, and nobody notices", key)
		}
		if err := db.State(w.d).Engine.DB.Set(key, value, nil); err != nil {
			t.Fatal(err)
		}
		if err := look(); err != nil {
			t.Fatalf("key %x is back: %v", key, err)
		}
		noticed[key[0]]++
	}
	t.Logf("keys by kind: %v", noticed)
}
