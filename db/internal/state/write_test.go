package state

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// openState opens a new database in memory that has a collection with the items "a" and "b" in
// rows 0 and 1. It is closed with the test.
func openState(t *testing.T) (*Database, *CollectionState) {
	t.Helper()
	return openStateOn(t, vfs.NewMem(), nil)
}

// openStateOn is openState on a file system. changed, unless nil, hears of each new view.
func openStateOn(t *testing.T, fsys vfs.FS, changed func([]*CollectionView)) (*Database, *CollectionState) {
	t.Helper()
	cfg := &store.Config{FS: fsys, ReserveBytes: -1, Signals: signal.NewSender(slog.New(slog.DiscardHandler), nil, nil)}
	cfg.Room = store.NewReserve(cfg, "db")
	d := New(store.NewEngine(cfg, "db"), cfg.Signals, -1, -1, changed)
	kv, err := store.Open("db", cfg, d.Engine.Log, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Open(kv, 0, false, false); err != nil {
		t.Fatal(err)
	}
	first := d.Run(nil)
	t.Cleanup(func() {
		d.End()
		if err := kv.Close(); err != nil {
			t.Error(err)
		}
	})
	d.Load(t.Context(), first)
	first.Release()
	schema := &record.Descriptor{
		Name:       "main",
		Modalities: []record.Modality{{Name: "image", Dim: 2}}, Fields: []record.Field{{Name: "n", Type: record.Int}},
	}
	if err := d.Committer.Do(t.Context(), 0, func(tx *Tx) error { return tx.CreateCollection(schema) }); err != nil {
		t.Fatal(err)
	}
	if err := d.Committer.Submit(t.Context(), &Request{Changes: []*Change{put("a", int64(1)), put("b", int64(2))}}); err != nil {
		t.Fatal(err)
	}
	return d, d.Committer.States[1]
}

// put puts an item with a field. A value of a type that no field has is found only when the
// change is applied.
func put(key string, value any) *Change {
	return &Change{Collection: 1, Kind: PutItem, Item: &record.Item{Key: key, Fields: []codec.Field{{Value: value}}}}
}

// An asked context calls a function when it is asked for its error.
type asked struct {
	context.Context
	hook func()
}

func (c asked) Err() error { c.hook(); return nil }

// deleteBoth deletes both items, and calls the hook with the transaction between resolving and
// applying.
func deleteBoth(d *Database, s *CollectionState, hook func(*Tx)) error {
	return d.Committer.Free(context.Background(), func(tx *Tx) error {
		called := 0
		ctx := asked{context.Background(), func() {
			if called++; called == 3 { // after one call for each item
				hook(tx)
			}
		}}
		_, err := tx.DeleteItems(ctx, s, 2, func(f func(uint32, string) error) error {
			return errors.Join(f(0, "a"), f(1, "b"))
		})
		return err
	})
}

// An error between the first change of a request and its last leaves memory undefined. So it
// fails the database, whichever way the request has come.
func TestFailedApplyFailsTheDatabase(t *testing.T) {
	wrong := []*Change{put("c", int64(3)), put("d", int32(4))}
	for name, write := range map[string]func(*Database, *CollectionState) error{
		"a write": func(d *Database, _ *CollectionState) error {
			return d.Committer.Submit(context.Background(), &Request{Changes: wrong})
		},
		"a deletion of many": func(d *Database, s *CollectionState) error {
			return deleteBoth(d, s, func(tx *Tx) { // of the second item it is not known any more where it is
				delete(tx.rows, itemKey{1, "b"})
				if err := d.Engine.Set(codec.ItemKey(1, "b"), []byte{1}, pebble.NoSync); err != nil {
					t.Error(err)
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := openState(t)
			before := d.Current.Load().Sequence
			if err := write(d, s); !errors.Is(err, fault.ErrFailed) {
				t.Errorf("%v", err)
			}
			if err := d.Committer.Submit(context.Background(), &Request{Changes: []*Change{put("e", int64(5))}}); !errors.Is(err, fault.ErrFailed) {
				t.Errorf("afterwards: %v", err)
			}
			v := d.Latest()
			defer v.Release()
			cv, err := v.Collection(1, "main")
			if err != nil {
				t.Fatal(err)
			}
			if v.Sequence != before || cv.Items != 2 {
				t.Errorf("commit %d with %d items, and before %d", v.Sequence, cv.Items, before)
			}
		})
	}
}

// A write that is refused changes nothing, and fails nobody else.
func TestRefusedWriteFailsAlone(t *testing.T) {
	d, s := openState(t)
	refused := errors.New("refused")
	err := d.Committer.Do(t.Context(), 0, func(tx *Tx) error {
		return tx.write(func(int) error { return refused }, &Request{Changes: []*Change{put("c", int64(3))}})
	})
	if !errors.Is(err, refused) {
		t.Error(err)
	}
	if err := deleteBoth(d, s, func(*Tx) { /* nothing is wrong */ }); err != nil {
		t.Error(err)
	}
	if err := d.Committer.Submit(t.Context(), &Request{Changes: []*Change{put("c", int64(3))}}); err != nil {
		t.Error(err)
	}
	if n := d.Committer.Figures.Put.Load(); n != 3 {
		t.Errorf("%d items put, want 3", n)
	}
}
