package db_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/synth"
)

func spacesOf(t testing.TB, c *db.Collection) []db.SpaceInfo {
	t.Helper()
	all, err := c.Spaces(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// states says in short which spaces there are.
func states(all []db.SpaceInfo) string {
	s := ""
	for _, sp := range all {
		s += fmt.Sprintf("%d %s ", sp.Space, sp.State)
		if sp.Previous {
			s += "previous "
		}
	}
	return s
}

// frameChecksum is the checksum of a frame, computed from what comes before it.
func frameChecksum(b []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(b[:len(b)-4], crc32.MakeTable(crc32.Castagnoli)))
}

func TestSpaces(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	if all := spacesOf(t, c); len(all) != 0 {
		t.Errorf("before training: %+v", all)
	}
	items := dbkit.ViewItems(150, 3)
	putAll(t, c, items)
	building := ""
	first := dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 30, Progress: func(phase string, _, _ int64) {
		if phase == "encode" {
			building = states(spacesOf(t, c))
		}
	}}})
	if building != "1 building " {
		t.Errorf("while it was being built: %s", building)
	}
	before, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	then, err := before.Collection("main")
	if err != nil {
		t.Fatal(err)
	}
	old := spacesOf(t, then)
	second, err := c.Train(ctx, dbkit.TinyTraining(2))
	if err != nil {
		t.Fatal(err)
	}
	all := spacesOf(t, c)
	if states(all) != "1 active 2 standby " {
		t.Fatalf("trained twice: %s", states(all))
	}
	if diff := cmp.Diff(old, all[:1]); diff != "" {
		t.Error("another training changed what is told of a space:", diff)
	}
	s := statsOf(t, c)
	labelled := 0
	for _, it := range items {
		if len(it.Labels) > 0 && len(it.Vectors) > 0 {
			labelled++
		}
	}
	sp := all[0]
	if sp.Bits != 32 || sp.Revision != 1 || sp.Items != first.Items || sp.Codes != s.DistinctCodes || sp.Parent != 0 ||
		sp.Taught != labelled || sp.Pending != s.Pending || s.Taught != labelled || s.Spaces != 2 || sp.Built != 0 ||
		time.Since(sp.Created) > time.Minute {
		t.Errorf("%+v, stats %+v", sp, s)
	}
	pending := 0
	for _, it := range items {
		if len(it.Labels) == 0 && len(it.Vectors) > 0 {
			pending++
		}
	}
	if sp.Pending != pending {
		t.Errorf("%d items have not been seen, of %d", sp.Pending, pending)
	}
	if all[1].Items != second.Items {
		t.Errorf("%+v", all[1])
	}
	err = db.Read(c, func(_ *state.View, cv *state.CollectionView) error {
		for i, tr := range []*db.Training{first, second} {
			sp := cv.SpaceNumber(uint32(i + 1)).Space
			b, err := sp.Learned.MarshalBinary()
			if err != nil {
				return err
			}
			if all[i].Checksum != frameChecksum(b) || all[i].ModelBytes != int64(len(b)) || all[i].StatisticsBytes == 0 {
				t.Errorf("space %d: model of %d bytes, %s: %+v", i+1, len(b), frameChecksum(b), all[i])
			}
			// Encoding and commits come after the report is stored.
			report := tr.Report
			report.Seconds = all[i].Training.Seconds
			if diff := cmp.Diff(&report, all[i].Training); diff != "" || report.Seconds["solve"] == 0 {
				t.Errorf("space %d: %s", i+1, diff)
			}
			if len(all[i].Revisions) != 1 {
				t.Fatalf("space %d: %+v", i+1, all[i].Revisions)
			}
			r := all[i].Revisions[0]
			if r.Revision != 1 || r.Parent != 0 || r.Items != labelled || r.Labelled != labelled || r.Drift != nil ||
				r.Bytes != all[i].ModelBytes || r.Checksum != all[i].Checksum || !r.Created.Equal(all[i].Created) {
				t.Errorf("space %d: %+v", i+1, r)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Activate(ctx, 2); err != nil {
		t.Fatal(err)
	}
	if got := states(spacesOf(t, c)); got != "1 standby previous 2 active " {
		t.Errorf("activated: %s", got)
	}
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20}})
	if err := c.DropSpace(ctx, 1); err != nil {
		t.Fatal(err)
	}
	all = spacesOf(t, c)
	if states(all) != "2 standby previous 3 active " {
		t.Errorf("dropped: %s", states(all))
	}
	if diff := cmp.Diff(old, spacesOf(t, then)); diff != "" {
		t.Error("in a snapshot:", diff)
	}
	before.Close()
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, db.State(d).Engine.Dir, nil)
	defer d.Close()
	c = dbkit.MustCollection(t, d, "main")
	if diff := cmp.Diff(all, spacesOf(t, c)); diff != "" {
		t.Error("reopened:", diff)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.Spaces(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestSpacesOfACodesOnlyCollection(t *testing.T) {
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer d.Close()
	c, err := d.CreateCollection(ctx, "codes", db.Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	putAll(t, c, []*db.Item{{Key: "a", Code: []byte{1, 2}}, {Key: "b", Code: []byte{1, 2}}})
	all := spacesOf(t, c)
	if len(all) != 1 {
		t.Fatalf("%+v", all)
	}
	want := db.SpaceInfo{
		Space: 1, State: db.SpaceActive, Created: all[0].Created, Bits: 16, Revision: 1,
		Items: 2, Codes: 1, Revisions: []db.RevisionInfo{},
	}
	if diff := cmp.Diff(want, all[0]); diff != "" {
		t.Error(diff)
	}
}

// Revisions are told of from their descriptors, whatever lies between these, and each has
// the checksum of its own bytes.
func TestRevisionInfos(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	putAll(t, c, dbkit.Pairs(60, synth.Config{}))
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20}})
	first := spacesOf(t, c)[0]
	want := []db.RevisionInfo{first.Revisions[0], {
		Revision: 3, Parent: 2, Created: spaces.Now(), Pinned: true, Teacher: "modality", Lead: "text", Reason: "because",
		Items: 4, Labelled: 1, Unlabelled: 3, Forgotten: 2, Drift: db.Drift{"text": .25},
	}, {Revision: 300, Parent: 3, Created: spaces.Now(), Items: 1}}
	frames := [][]byte{nil, make([]byte, 2*record.ChunkBytes+2), make([]byte, 100)}
	for i := 1; i < 3; i++ {
		frames[i][7] = byte(i)
		sum := crc32.Checksum(frames[i], crc32.MakeTable(crc32.Castagnoli))
		for range 4 {
			frames[i] = append(frames[i], byte(sum))
			sum >>= 8
		}
	}
	err := db.Inside(c).Do(ctx, 0, func(tx *state.Tx, s *state.CollectionState) error {
		for i := 1; i < 3; i++ {
			d := &spaces.RevisionDescriptor{RevisionInfo: want[i], Model: record.ChunksOf(frames[i])}
			if err := tx.WriteRevision(s.SpaceByID(1), d, frames[i]); err != nil {
				return err
			}
		}
		tx.Committer.Touch(s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < 3; i++ {
		want[i].Bytes, want[i].Checksum = int64(len(frames[i])), frameChecksum(frames[i])
	}
	if diff := cmp.Diff(want, spacesOf(t, c)[0].Revisions); diff != "" {
		t.Error(diff)
	}
	// A frame whose last chunk has fewer bytes than a checksum.
	short := append(make([]byte, record.ChunkBytes-2), 0x44, 0x33, 0x22, 0x11)
	kv := db.State(db.Of(c)).Engine.DB
	for i := range uint32(2) {
		from, to := int(i)*record.ChunkBytes, min(int(i+1)*record.ChunkBytes, len(short))
		if err := kv.Set(codec.ChunkKey(codec.KindModel, 77, 1, i), short[from:to], pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := record.Checksum(kv, codec.NumberKey(codec.KindModel, 77, 1), 0, record.ChunksOf(short))
	if err != nil || sum != "11223344" {
		t.Errorf("%s, %v", sum, err)
	}
	if _, err := record.Checksum(kv, codec.NumberKey(codec.KindModel, 78, 1), 0, record.ChunksOf(short)); !errors.Is(err, db.ErrCorrupt) {
		t.Errorf("without chunks: %v", err)
	}
	// Bytes that no descriptor tells of, and one that does not fit.
	for what, change := range map[string]func(tx *state.Tx, s *state.CollectionState) error{
		"missing": func(tx *state.Tx, s *state.CollectionState) error {
			return tx.Batch.Delete(codec.RevisionKey(s.ID, 1, 3, 0), nil)
		},
		"of another": func(tx *state.Tx, s *state.CollectionState) error {
			return tx.Batch.Set(codec.RevisionKey(s.ID, 1, 3, 0), []byte(`{"version":0,"revision":4}`), nil)
		},
		"no JSON": func(tx *state.Tx, s *state.CollectionState) error {
			return tx.Batch.Set(codec.RevisionKey(s.ID, 1, 3, 0), []byte("{"), nil)
		},
	} {
		if err := db.Inside(c).Do(ctx, 0, change); err != nil {
			t.Fatal(err)
		}
		if _, err := spaces.ReadRevisions(kv, db.Inside(c).ID, 1); !errors.Is(err, db.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
