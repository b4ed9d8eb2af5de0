package db_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// Close waits for a write whose sync is awaited, and for one that is prepared meanwhile. Both
// are acknowledged, and there afterwards.
func TestCloseWaitsForWritesInFlight(t *testing.T) {
	mem := vfs.NewMem()
	syncing, open := make(chan struct{}, 100), make(chan struct{})
	var hold atomic.Bool
	d := dbkit.MustOpen(t, "db", &db.Options{FS: errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if strings.HasSuffix(op.Path, ".log") && op.Kind == errorfs.OpFileSyncData && hold.Load() {
			syncing <- struct{}{}
			<-open
		}
		return nil
	}))})
	c := need(d.CreateCollection(ctx, "main", numbersSchema))(t)
	hold.Store(true)
	answers := make(chan error, 3)
	put := func(i int) {
		_, err := c.Put(ctx, numbered(i))
		answers <- err
	}
	go put(0)
	<-syncing
	go put(1)
	for db.State(d).Guard.Calls() < 2 {
		time.Sleep(time.Millisecond)
	}
	go func() { answers <- d.Close() }()
	for {
		if _, err := d.Collection("main"); errors.Is(err, db.ErrClosed) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	close(open)
	for range 3 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	d = dbkit.MustOpen(t, "db", &db.Options{FS: mem})
	defer dbkit.MustClose(t, d)
	if n := commitsFound(t, d); n != 3 {
		t.Errorf("%d commits, want 3", n)
	}
}
