package state

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// A gate holds up the syncs of the log, and may let them fail.
type gate struct {
	mu   sync.Mutex
	held chan struct{} // closed by open; nil: nothing is held up
	err  error         // of the syncs that were held up
	at   chan struct{} // hears of each that is
}

func (g *gate) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held, g.at = make(chan struct{}), make(chan struct{}, 100)
}

// open lets syncs go on, those that are held up with an error or nil.
func (g *gate) open(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held != nil {
		g.err = err
		close(g.held)
		g.held = nil
	}
}

func (g *gate) MaybeError(op errorfs.Op) error {
	if !strings.HasSuffix(op.Path, ".log") ||
		op.Kind != errorfs.OpFileSync && op.Kind != errorfs.OpFileSyncData &&
			op.Kind != errorfs.OpFileSyncTo {
		return nil
	}
	g.mu.Lock()
	held, at := g.held, g.at
	g.mu.Unlock()
	if held == nil {
		return nil
	}
	at <- struct{}{}
	<-held
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

func (g *gate) String() string { return "gate" }

// syncs waits until the log is synced for a write, which must not be answered before.
func (g *gate) syncs(t *testing.T, answer chan error) {
	t.Helper()
	select {
	case <-g.at:
	case err := <-answer:
		t.Fatalf("answered without a sync: %v", err)
	}
}

// openGated is openState with a gate before the log.
func openGated(t *testing.T) (*Database, *gate) {
	g := &gate{}
	d, _ := openStateOn(t, errorfs.Wrap(vfs.NewMem(), g), nil)
	t.Cleanup(func() { g.open(nil) })
	return d, g
}

// submit submits a write of some changes, and returns where its answer comes.
func submit(d *Database, changes ...*Change) chan error {
	answer := make(chan error, 1)
	go func() { answer <- d.Committer.Submit(context.Background(), &Request{Changes: changes}) }()
	return answer
}

// expect is the condition that the item with a key is there with this field, or, for nil, that
// there is none.
func expect(key string, value any) *Change {
	ch := put(key, value)
	ch.Kind = ExpectItem
	if value != nil {
		ch.Old = ch.Item
	}
	return ch
}

// stored waits until the store has the item with a key, be it durable or not.
func stored(t *testing.T, d *Database, key string) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, found, err := record.RowOf(d.Engine.DB, 1, key); found {
			return
		} else if err != nil || time.Since(begun) > time.Minute {
			t.Fatalf("%q is not stored: %v", key, err)
		}
	}
}

// seen reports whether readers see the item with a key.
func seen(t *testing.T, d *Database, key string) bool {
	t.Helper()
	v := d.Latest()
	defer v.Release()
	cv, err := v.Collection(1, "main")
	if err != nil {
		t.Fatal(err)
	}
	_, err = cv.Row(v.Snap, key)
	if err != nil && !errors.Is(err, fault.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// While a sync is awaited the next write is prepared, against what is not durable yet. Readers
// see neither, and nobody is answered, until the syncs have come; and who is refused because of
// a write sees that write.
func TestNothingIsSeenBeforeItsSync(t *testing.T) {
	d, g := openGated(t)
	before := d.Current.Load().Sequence
	g.hold()
	c := submit(d, put("c", int64(3)))
	g.syncs(t, c)
	e := submit(d, expect("c", int64(3)), put("e", int64(5)))
	stored(t, d, "e")
	refused := make(chan error, 1)
	var sees atomic.Bool
	go func() {
		err := d.Committer.Submit(context.Background(),
			&Request{Changes: []*Change{expect("e", nil), put("e", int64(6))}})
		sees.Store(seen(t, d, "e"))
		refused <- err
	}()
	if n := d.Current.Load().Sequence; n != before || seen(t, d, "c") || seen(t, d, "e") {
		t.Errorf("readers see commit %d, and before it was %d", n, before)
	}
	select {
	case err := <-c:
		t.Errorf("answered before its sync: %v", err)
	case err := <-e:
		t.Errorf("answered before its sync: %v", err)
	default:
	}
	g.open(nil)
	if err := errors.Join(<-c, <-e); err != nil {
		t.Error(err)
	}
	if err := <-refused; !errors.Is(err, fault.ErrConflict) || !sees.Load() {
		t.Errorf("%v, and sees what has refused it: %v", err, sees.Load())
	}
	if !seen(t, d, "c") || !seen(t, d, "e") {
		t.Error("not seen after the answer")
	}
}

// Where a sync fails, all that was prepared meanwhile fails with it, also what was refused
// because of it; readers see what they saw.
func TestFailedSyncFailsAllInFlight(t *testing.T) {
	d, g := openGated(t)
	before := d.Current.Load().Sequence
	g.hold()
	answers := []chan error{submit(d, put("c", int64(3)))}
	g.syncs(t, answers[0])
	answers = append(answers, submit(d, put("e", int64(5))))
	stored(t, d, "e")
	answers = append(answers, submit(d, expect("e", nil), put("e", int64(6))))
	look := make(chan error, 1)
	go func() { look <- d.Committer.Look(context.Background(), func() error { return nil }) }()
	for d.Committer.Figures.Waiting.Load() < 4 {
		time.Sleep(time.Millisecond)
	}
	g.open(errors.New("injected"))
	for i, answer := range append(answers, look) {
		if err := <-answer; !errors.Is(err, fault.ErrFailed) {
			t.Errorf("answer %d: %v", i, err)
		}
	}
	if err := <-submit(d, put("f", int64(7))); !errors.Is(err, fault.ErrFailed) {
		t.Errorf("afterwards: %v", err)
	}
	if n := d.Current.Load().Sequence; n != before || seen(t, d, "c") || seen(t, d, "e") {
		t.Errorf("readers see commit %d, and before it was %d", n, before)
	}
}

// An operation begins when nothing is in flight: what the committer has is what readers see.
func TestOperationsRunWithNothingInFlight(t *testing.T) {
	d, _ := openGated(t)
	var writers sync.WaitGroup
	var stop atomic.Bool
	for i := range 4 {
		writers.Go(func() {
			for n := int64(0); !stop.Load(); n++ {
				if err := <-submit(d, put(string(rune('k'+i)), n)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 200 {
		if err := d.Committer.Look(t.Context(), func() error {
			if shown, is := d.Current.Load().Sequence, d.Committer.sequence; shown != is {
				t.Errorf("readers see commit %d, and the committer is at %d", shown, is)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		if err := d.Committer.Show(t.Context(), func() error { return nil }); err != nil {
			t.Error(err)
		}
	}
	stop.Store(true)
	writers.Wait()
}

// A panic after the sync fails the database, and is answered, as is what was in flight behind.
func TestPanicAtTheEndOfACommit(t *testing.T) {
	g := &gate{}
	var panics atomic.Bool
	d, _ := openStateOn(t, errorfs.Wrap(vfs.NewMem(), g), func([]*CollectionView) {
		if panics.Load() {
			panic("mine")
		}
	})
	t.Cleanup(func() { g.open(nil) })
	g.hold()
	c := submit(d, put("c", int64(3)))
	g.syncs(t, c)
	e := submit(d, put("e", int64(5)))
	stored(t, d, "e")
	panics.Store(true)
	g.open(nil)
	for _, answer := range []chan error{c, e, submit(d, put("f", int64(6)))} {
		if err := <-answer; !errors.Is(err, fault.ErrFailed) || !strings.Contains(err.Error(), "mine") {
			t.Error(err)
		}
	}
}

// The disk does not count yet what is in flight, so the next write is admitted only if there is
// room for both.
func TestReserveCountsWhatIsInFlight(t *testing.T) {
	d, g := openGated(t)
	admitted := make(chan int64, 100)
	d.Committer.Admit = func(bytes int64, _ bool) error { admitted <- bytes; return nil }
	big := put("c", int64(3))
	big.Item.Payload = make([]byte, 10_000)
	if err := <-submit(d, put("a", int64(9))); err != nil {
		t.Fatal(err)
	}
	alone := <-admitted
	g.hold()
	c := submit(d, big)
	g.syncs(t, c)
	first := <-admitted
	e := submit(d, put("a", int64(9)))
	stored(t, d, "c")
	if n := <-admitted; n != alone+first {
		t.Errorf("%d bytes admitted, alone %d, and %d are in flight", n, alone, first)
	}
	g.open(nil)
	if err := errors.Join(<-c, <-e, <-submit(d, put("a", int64(9)))); err != nil {
		t.Error(err)
	}
	if n := <-admitted; n != alone {
		t.Errorf("%d bytes admitted when nothing is in flight, alone %d", n, alone)
	}
}

// openState opens a new database in memory that has a collection with the items "a" and "b" in
// rows 0 and 1. It is closed with the test.
func openState(t *testing.T) (*Database, *CollectionState) {
	t.Helper()
	return openStateOn(t, vfs.NewMem(), nil)
}

// openStateOn is openState on a file system. changed, unless nil, hears of each new view.
func openStateOn(t *testing.T, fsys vfs.FS, changed func([]*CollectionView)) (*Database, *CollectionState) {
	t.Helper()
	cfg := &store.Config{FS: fsys, ReserveBytes: -1, Signals: signal.NewSender(slog.New(slog.DiscardHandler),
		nil)}
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
		Modalities: []record.Modality{{Name: "image", Dim: 2}},
		Fields:     []record.Field{{Name: "n", Type: record.Int}},
	}
	if err := d.Committer.Do(t.Context(), 0,
		func(tx *Tx) error { return tx.CreateCollection(schema) }); err != nil {
		t.Fatal(err)
	}
	if err := d.Committer.Submit(t.Context(),
		&Request{Changes: []*Change{put("a", int64(1)), put("b", int64(2))}}); err != nil {
		t.Fatal(err)
	}
	return d, d.Committer.States[1]
}

// put puts an item with a field. A value of a type that no field has is found only when the
// change is applied.
func put(key string, value any) *Change {
	return &Change{Collection: 1, Kind: PutItem,
		Item: &record.Item{Key: key, Fields: []codec.Field{{Value: value}}}}
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
			if err := d.Committer.Submit(context.Background(),
				&Request{Changes: []*Change{put("e", int64(5))}}); !errors.Is(err, fault.ErrFailed) {
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
