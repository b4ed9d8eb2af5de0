package backup

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// timed runs a test with a clock that advances when all goroutines wait.
func timed(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func mustCreate(t *testing.T, s Store, about Manifest, files map[string][]byte) *Manifest {
	t.Helper()
	time.Sleep(time.Second)
	return mustCreateAtOnce(t, s, about, files)
}

func mustCreateAtOnce(t *testing.T, s Store, about Manifest, files map[string][]byte) *Manifest {
	t.Helper()
	m, err := Create(t.Context(), s, about, sourcesOf(files), CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func prunedTo(t *testing.T, s Store, keep int) []string {
	t.Helper()
	time.Sleep(time.Second)
	if _, err := Prune(t.Context(), s, PruneOptions{Keep: keep}); err != nil {
		t.Fatal(err)
	}
	all, err := List(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, m := range all {
		left = append(left, m.ID)
	}
	return left
}

// A prune may be about to delete an object of an incomplete backup. Until that is ruled
// out, or the backup is gone, no other backup is deleted in its favour.
func TestNoBackupMakesRoomForOneThatIsCondemned(t *testing.T) {
	timed(t, noBackupMakesRoom)
}

func noBackupMakesRoom(t *testing.T) {
	s := newMemStore()
	old := mustCreate(t, s, Manifest{}, map[string][]byte{"a": {1}})
	young := mustCreate(t, s, Manifest{}, map[string][]byte{"a": {1}, "b": {2}})
	other := pruner{store: s}
	if err := other.plan(t.Context(), newID(young.Time), []Piece{young.Files[1].Pieces[0]}); err != nil {
		t.Fatal(err)
	}
	if left := prunedTo(t, s, 1); !slices.Equal(left, []string{old.ID, young.ID}) {
		t.Errorf("left are %v of %s and %s", left, old.ID, young.ID)
	}
	if err := s.Delete(t.Context(), young.Files[1].Pieces[0].object()); err != nil {
		t.Fatal(err)
	}
	if left := prunedTo(t, s, 1); !slices.Equal(left, []string{old.ID, young.ID}) {
		t.Errorf("left are %v of %s and %s", left, old.ID, young.ID)
	}
	if _, err := Find(t.Context(), s, Choice{ID: old.ID}); err != nil {
		t.Error(err)
	}
	next := mustCreate(t, s, Manifest{}, map[string][]byte{"a": {1}, "b": {2}})
	if left := prunedTo(t, s, 1); !slices.Equal(left, []string{next.ID}) {
		t.Errorf("left are %v, not %s", left, next.ID)
	}
}

// A backup stores again the objects that it needs from the plan of a killed prune. The
// next prune deletes the rest.
func TestBackupAfterAPruneWasKilled(t *testing.T) {
	timed(t, backupAfterAPruneWasKilled)
}

func backupAfterAPruneWasKilled(t *testing.T) {
	s := newMemStore()
	files := map[string][]byte{"a": {1}, "b": {2}, "c": {3}}
	m := mustCreate(t, s, Manifest{}, files)
	other := pruner{store: s}
	if err := other.plan(t.Context(), newID(m.Time), m.pieces()); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), jsonName(backups, m.ID)); err != nil {
		t.Fatal(err)
	}
	again := mustCreate(t, s, Manifest{}, files)
	if again.BytesNew != 3 {
		t.Errorf("%d bytes are new", again.BytesNew)
	}
	if left := prunedTo(t, s, 1); !slices.Equal(left, []string{again.ID}) {
		t.Errorf("left are %v", left)
	}
	prunedTo(t, s, 1)
	want := []string{markerName, jsonName(backups, again.ID)}
	for _, p := range again.pieces() {
		want = append(want, p.object())
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(s.objects)); !slices.Equal(got, want) {
		t.Errorf("the store holds %q", got)
	}
	if _, err := Prune(t.Context(), s, PruneOptions{Keep: -1}); !errors.Is(err, ErrInvalid) {
		t.Errorf("%v", err)
	}
}

// Successive backups sort in order, however fast they are made.
func TestBackupsSortByWhenTheyWereMade(t *testing.T) {
	s := newMemStore()
	var made []string
	for i := range 20 {
		made = append(made, mustCreateAtOnce(t, s, Manifest{}, map[string][]byte{"a": {byte(i)}}).ID)
	}
	if !slices.IsSorted(made) {
		t.Errorf("made in turn: %q", made)
	}
}

// If there are objects and no backup, a prune deletes nothing: the manifests may be on
// a disk that is not mounted. A running backup makes no difference, but its own objects
// are no reason to refuse.
func TestPruneWithoutBackups(t *testing.T) {
	folder, err := Folder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for what, s := range map[string]Store{"memory": newMemStore(), "folder": folder} {
		t.Run(what, func(t *testing.T) { pruneWithoutBackups(t, s) })
	}
}

func pruneWithoutBackups(t *testing.T, s Store) {
	ctx := t.Context()
	all := func() map[string]int64 {
		found := map[string]int64{}
		if err := s.List(ctx, "", func(o Object) error { found[o.Name] = o.Size; return nil }); err != nil {
			t.Fatal(err)
		}
		return found
	}
	m := mustCreateAtOnce(t, s, Manifest{}, map[string][]byte{"a": {1}, "b": {2}})
	manifest := jsonName(backups, m.ID)
	kept, err := read(ctx, s, manifest, maxManifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, manifest); err != nil {
		t.Fatal(err)
	}
	refuses := func(when string) {
		t.Helper()
		before := all()
		for _, opt := range []PruneOptions{{}, {Keep: 3}, {Keep: 3, DryRun: true}} {
			if _, err := Prune(ctx, s, opt); !errors.Is(err, ErrNoBackup) {
				t.Errorf("%s: prune %+v: %v", when, opt, err)
			}
		}
		if made, err := List(ctx, s); !errors.Is(err, ErrNoBackup) {
			t.Errorf("%s: %d backups, %v", when, len(made), err)
		}
		if v, err := Verify(ctx, s, VerifyOptions{}, nil); !errors.Is(err, ErrNoBackup) {
			t.Errorf("%s: verified %+v, %v", when, v, err)
		}
		if after := all(); !maps.Equal(after, before) {
			t.Errorf("%s: there is %v, there was %v", when, after, before)
		}
	}
	refuses("without a backup")
	began := beginning()
	going := Manifest{Version: Version, ID: newID(began), Time: began}
	b, err := going.encode()
	if err != nil {
		t.Fatal(err)
	}
	lease := jsonName(running, going.ID)
	if err := putBytes(ctx, s, lease, b); err != nil {
		t.Fatal(err)
	}
	refuses("while a backup is being made")
	if err := s.Delete(ctx, lease); err != nil {
		t.Fatal(err)
	}

	// The first backup ever is known to be running.
	if err := putBytes(ctx, s, jsonName(running, m.ID), kept); err != nil {
		t.Fatal(err)
	}
	before := all()
	if p, err := Prune(ctx, s, PruneOptions{Keep: 3}); err != nil || p.Objects > 0 || p.Running != 1 {
		t.Errorf("during the first backup: %+v, %v", p, err)
	}
	if after := all(); !maps.Equal(after, before) {
		t.Errorf("during the first backup: there is %v, there was %v", after, before)
	}
	if err := s.Delete(ctx, jsonName(running, m.ID)); err != nil {
		t.Fatal(err)
	}

	// The manifests are back; or another backup is made, and the rest is deleted.
	if err := putBytes(ctx, s, manifest, kept); err != nil {
		t.Fatal(err)
	}
	if p, err := Prune(ctx, s, PruneOptions{Keep: 3}); err != nil || p.Objects > 0 || len(p.Kept) != 1 {
		t.Errorf("when the manifest is back: %+v, %v", p, err)
	}
	if err := s.Delete(ctx, manifest); err != nil {
		t.Fatal(err)
	}
	mustCreateAtOnce(t, s, Manifest{}, map[string][]byte{"c": {3}})
	if p, err := Prune(ctx, s, PruneOptions{Keep: 3}); err != nil || p.Objects != 2 {
		t.Errorf("after another backup: %+v, %v", p, err)
	}
}
