package db_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/quant"
	"github.com/fddhdb/fddhdb/model"
)

// checkSpaces verifies what is stored, deeply, and compares with it what an open database
// holds in memory, and codes with what the definition makes of their items.
func checkSpaces(t fataler, d *db.DB) {
	t.Helper()
	must(t, inconsistency(d))
}

// inconsistency returns the first thing that checkSpaces does not like. It is
// dbkit.ErrInjected where a test makes reading fail.
func inconsistency(d *db.DB) error {
	v, done, err := db.State(d).Acquire()
	if err != nil {
		return err
	}
	defer done()
	for cv := range v.Collections.Values() {
		if err := (&memoryCheck{snap: v.Snap, cv: cv}).check(); err != nil {
			return fmt.Errorf("collection %q: %w", cv.Name, err)
		}
	}
	tables, rerank := state.TableBytes{}, 0
	for set := range v.CodeSets() {
		tables.Add(set)
	}
	if tables != v.Tables {
		return fmt.Errorf("tables of substrings of %+v bytes, %+v are known", tables, v.Tables)
	}
	for cv := range v.Collections.Values() {
		for _, sv := range cv.Spaces {
			rerank += sv.Directions.Bytes()
		}
		for _, t := range cv.Vectors {
			rerank += t.Bytes()
		}
	}
	if all := v.Rerank.All(); rerank != all {
		return fmt.Errorf("projections and vectors of %d bytes in memory, %d are known", rerank, all)
	}
	var findings []string
	_, err = d.Verify(ctx, db.VerifyOptions{Deep: true}, func(f report.Finding) error {
		findings = append(findings, f.String())
		return nil
	})
	all := strings.Join(findings, "\n")
	switch {
	case err != nil:
		return err
	case strings.Contains(all, dbkit.ErrInjected.Error()):
		return dbkit.ErrInjected // other findings may follow from that
	case len(findings) > 0:
		return errors.New(all)
	}
	return nil
}

// A memoryCheck compares a collection in memory with what is stored of it.
type memoryCheck struct {
	snap pebble.Reader
	cv   *state.CollectionView
	n    codec.Counters
}

// rows reads a set of rows.
func (k *memoryCheck) rows(prefix []byte) (*roaring.Bitmap, error) {
	rows := roaring.New()
	err := record.ForEach(k.snap, prefix, func(key, value []byte) error {
		return record.AddRows(rows, key, value, binary.BigEndian.Uint16(key[len(key)-2:]))
	})
	return rows, err
}

// online is under what the rows of a set of the online step are stored.
func (k *memoryCheck) online(space uint32, set byte) []byte {
	key := codec.OnlineRowsKey(k.cv.ID, space, set, 0)
	return key[:len(key)-2] // without the container
}

// same says where a set of rows in memory is not what is stored under a prefix.
func (k *memoryCheck) same(what string, memory *roaring.Bitmap, prefix []byte) error {
	stored, err := k.rows(prefix)
	if err == nil && !memory.Equals(stored) {
		err = fmt.Errorf("%s: %v in memory, %v stored", what, memory, stored)
	}
	return err
}

func (k *memoryCheck) check() error {
	cv := k.cv
	b, err := record.Get(k.snap, codec.CollectionKey(codec.KindCounters, cv.ID))
	if err != nil {
		return err
	}
	if k.n, err = codec.DecodeCounters(b); err != nil {
		return err
	}
	if uint64(cv.Items) != k.n.Items || cv.NextRow != k.n.NextRow || len(cv.Spaces) != len(k.n.Spaces) {
		return fmt.Errorf("%d items, next row %d, %d spaces, counted are %+v", cv.Items, cv.NextRow,
			len(cv.Spaces), k.n)
	}
	if err := k.same("live rows", cv.Live, codec.RowsPrefix(cv.ID, codec.SetLive, 0)); err != nil {
		return err
	}
	for t, rows := range cv.Presence {
		if err := k.same(cv.Modalities[t].Name, rows, codec.RowsPrefix(cv.ID, codec.SetModality,
			uint32(t))); err != nil {
			return err
		}
	}
	if !cv.IndexOnly {
		if err := k.vectors(); err != nil {
			return err
		}
	}
	active, previous := uint32(k.n.ActiveSpace), uint32(k.n.PreviousSpace)
	if cv.Active != active || cv.Previous != previous || active != 0 && active == previous ||
		(cv.Space == nil) != (active == 0) || active != 0 && cv.Space.ID != active {
		return fmt.Errorf("space %d is active, %d was, counted are %+v", cv.Active, cv.Previous, k.n)
	}
	building := 0
	for i := range cv.Spaces {
		sv := &cv.Spaces[i]
		if sv.Numbers.Building {
			building++
		}
		if got, want := fmt.Sprintf("%+v", sv.Numbers), fmt.Sprintf("%+v", k.n.Spaces[i]); got != want {
			return fmt.Errorf("space %d is counted as %s, not %s", sv.Space.ID, got, want)
		}
		if err := k.space(sv); err != nil {
			return fmt.Errorf("space %d: %w", sv.Space.ID, err)
		}
	}
	if building > 1 {
		return fmt.Errorf("%d spaces are being built", building)
	}
	return nil
}

func (k *memoryCheck) space(sv *state.SpaceView) error {
	id := sv.Space.ID
	if uint64(id) >= k.n.NextSpace {
		return fmt.Errorf("the next space is %d", k.n.NextSpace)
	}
	if err := k.same("pending rows", sv.Pending, k.online(id, codec.SetPending)); err != nil {
		return err
	}
	if err := k.same("rows to be coded again", sv.Recode, k.online(id, codec.SetRecode)); err != nil {
		return err
	}
	codes, table, err := k.set(&sv.Codes)
	if err != nil {
		return err
	}
	if sv.Space.Learned == nil {
		return nil
	}
	if err := k.directions(sv); err != nil {
		return err
	}
	if b, err := record.Get(k.snap, codec.RevisionKey(k.cv.ID, id, 1, 0)); err != nil || b == nil {
		return errors.Join(err, errors.New("the first revision has no descriptor"))
	}
	if err := k.learning(sv); err != nil {
		return err
	}
	return record.ForEachItem(k.snap, k.cv.Descriptor, 0,
		func(row uint32, rec *codec.ItemRecord, vectors []model.Vector) error {
			var own []byte
			revision := uint32(0)
			if rc, has := codes[row]; has {
				own, revision = table[rc.Code].AppendBytes(nil, sv.Space.Bits), rc.Revision
			}
			err := k.row(sv, row, rec.Labels, vectors, own, revision)
			if err != nil {
				err = fmt.Errorf("row %d: %w", row, err)
			}
			return err
		})
}

// learning checks that before the first update all rows with features have taught or wait, and that
// none does where the model was learned without labels.
func (k *memoryCheck) learning(sv *state.SpaceView) error {
	having := roaring.New()
	if !sv.Space.Learned.LabelFree() {
		having = record.UnionOf(k.cv.Presence, sv.Space.Positions)
	}
	known := sv.Pending.Clone()
	err := record.ForEachEntry(k.snap, codec.NumberKey(codec.KindLessons, k.cv.ID, sv.Space.ID),
		func(row uint32, _ []byte) error {
			known.Add(row)
			return nil
		})
	if err == nil && sv.Space.Parent == 0 && sv.Space.Revision == 1 && !known.Equals(having) {
		err = fmt.Errorf("of rows %v, there has been no update and %v do not wait", having,
			roaring.AndNot(having, known))
	}
	return err
}

// set reads the codes of a set, and compares the table in memory with them.
func (k *memoryCheck) set(set *state.CodeSetView) (rows map[uint32]codec.RowCode, codes map[uint32]codec.Code,
	err error) {
	rows, codes = map[uint32]codec.RowCode{}, map[uint32]codec.Code{}
	err = record.ForEachEntry(k.snap, set.Prefix(codec.KindRowCodes),
		func(row uint32, entry []byte) (err error) {
			rows[row], err = codec.DecodeRowCode(entry)
			return err
		})
	if err == nil {
		err = record.ForEachEntry(k.snap, set.Prefix(codec.KindCodes), func(n uint32, entry []byte) error {
			codes[n] = codec.NewCode(set.Bits)
			_, err := codec.DecodeCodeEntry(codes[n], set.Bits, entry)
			return err
		})
	}
	if err != nil || set.Table == nil {
		return rows, codes, err
	}
	if set.Table.Items() != len(rows) || set.Table.Distinct() != len(codes) {
		return nil, nil, fmt.Errorf("%d codes of %d rows in memory, %d of %d stored", set.Table.Distinct(),
			set.Table.Items(), len(codes), len(rows))
	}
	for row, rc := range rows {
		if n, has := set.Table.CodeOf(row); !has || n != rc.Code {
			return nil, nil, fmt.Errorf("row %d has code number %d (%v), not %d", row, n, has, rc.Code)
		}
	}
	for n, code := range codes {
		if !slices.Equal(code, set.Table.Code(n)) {
			return nil, nil, fmt.Errorf("code number %d is %x, not %x", n, set.Table.Code(n), code)
		}
	}
	return rows, codes, nil
}

// directions compares the projections in memory with those that are stored.
func (k *memoryCheck) directions(sv *state.SpaceView) error {
	stored := map[uint32][]byte{}
	keys := sv.Space.Keys(k.cv.ID)
	err := record.ForEachEntry(k.snap, keys.Prefix(codec.KindProjection),
		func(row uint32, entry []byte) error {
			stored[row] = bytes.Clone(codec.Direction(entry))
			return nil
		})
	if err != nil {
		return err
	}
	return k.quantised("projection", sv.Directions, stored)
}

// vectors compares the vectors in memory with those that are stored.
func (k *memoryCheck) vectors() error {
	stored := make([]map[uint32][]byte, len(k.cv.Modalities))
	for t := range stored {
		stored[t] = map[uint32][]byte{}
	}
	err := record.ForEachItem(k.snap, k.cv.Descriptor, 0,
		func(row uint32, _ *codec.ItemRecord, vectors []model.Vector) error {
			for t, v := range k.cv.Vectors {
				if v.Rows() > 0 && vectors[t].Present() {
					stored[t][row] = quant.AppendVector(nil, vectors[t].Value)
				}
			}
			return nil
		})
	for t, v := range k.cv.Vectors {
		if err == nil {
			err = k.quantised(k.cv.Modalities[t].Name, v, stored[t])
		}
	}
	return err
}

// quantised compares the 8-bit vectors that are in memory with stored, the vectors in the store by row.
func (k *memoryCheck) quantised(what string, rows state.QuantView, stored map[uint32][]byte) error {
	if uint64(rows.Rows()) > k.cv.NextRow {
		return fmt.Errorf("%s of %d rows in memory, the next row is %d", what, rows.Rows(), k.cv.NextRow)
	}
	for row := range rows.Rows() {
		var memory []byte
		for _, x := range rows.Vector(row) {
			memory = append(memory, byte(x))
		}
		if !bytes.Equal(memory, stored[row]) {
			return fmt.Errorf("%s of row %d: %x in memory, %x stored", what, row, memory, stored[row])
		}
	}
	return nil
}

// row compares the codes of a row, if the first or the present revision gave them, with
// what the definition says.
func (k *memoryCheck) row(sv *state.SpaceView, row uint32, labels []uint32, vectors []model.Vector,
	own []byte, revision uint32) error {
	m := sv.Space.Learned
	switch {
	case sv.Numbers.Building && uint64(row) >= sv.Numbers.Built && own == nil, sv.Recode.Contains(row):
		return nil // its turn comes
	// else by a label that is known since, perhaps
	case revision == 1 && !m.LabelCode(codec.NewCode(sv.Space.Bits), labels):
		m = sv.Space.Trained
	case revision != 0 && revision != sv.Space.Revision && revision != 1:
		return nil // Verify has looked at it
	}
	x := make([]model.Vector, len(sv.Space.Positions))
	for i, t := range sv.Space.Positions {
		x[i] = vectors[t]
	}
	want, _, err := codeOfItem(m, labels, x)
	if err == nil && !bytes.Equal(own, want) {
		err = fmt.Errorf("code %x, not %x", own, want)
	}
	return err
}

// Whatever is taken away of a collection and its spaces, checkSpaces notices.
func TestChecksOfSpacesNotice(t *testing.T) {
	dbkit.LongTest(t)
	w := newWorld(t, dbkit.PairsSchema, true)
	items := dbkit.ViewItems(60, 2)
	w.put(items[:50])
	dbkit.MustTrain(t, w.c, dbkit.TinyTraining(1))
	dbkit.MustTrain(t, w.c, dbkit.TinyTraining(2))
	w.put(items[45:])
	need(w.c.Delete(ctx, "k2", "k4"))(t)
	w.reopen() // so that every key has its value whole
	checkSpaces(t, w.d)
	noticed, n := map[byte]int{}, 0
	for key := range storeKeys(t, w.d) {
		if n++; !effort.Sampled(n, 3) {
			continue
		}
		value := need(record.Get(db.State(w.d).Engine.DB, key))(t)
		if key[0] <= codec.KindName || key[0] == codec.KindFieldRows || codec.EmptySum(key, value) {
			continue
		}
		look := func() error {
			err := db.State(w.d).Committer.Show(ctx, func() error { return nil })
			return errors.Join(err, inconsistency(w.d))
		}
		must(t, db.State(w.d).Engine.DB.Delete(key, nil))
		failIf(t, look() == nil, "key %x is gone, and nobody notices", key)
		must(t, db.State(w.d).Engine.DB.Set(key, value, nil))
		err := look()
		stopIf(t, err != nil, "key %x is back: %v", key, err)
		noticed[key[0]]++
	}
	t.Logf("keys by kind: %v", noticed)
}
