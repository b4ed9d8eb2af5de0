package dbtest

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/event"
)

// Sound databases do not fail a test, whatever the test does with them.
func TestSoundDatabases(t *testing.T) {
	mem := vfs.NewMem()
	dir := t.TempDir()
	for name, test := range map[string]func(t testing.TB){
		"in memory":   func(t testing.TB) { loaded(t, Open(t, "", nil), 100) },
		"in a folder": func(t testing.TB) { loaded(t, Open(t, filepath.Join(dir, "a"), nil), 100) },
		"two at once": func(t testing.TB) { Open(t, "", nil); Open(t, "", nil) },
		"closed":      func(t testing.TB) { mustClose(t, Open(t, filepath.Join(dir, "b"), nil)) },
		"opened again": func(t testing.TB) {
			d := Open(t, "", &db.Options{FS: mem})
			loaded(t, d, 10)
			mustClose(t, d)
			if c, err := Open(t, "", &db.Options{FS: mem}).Collection("main"); err != nil ||
				c.Name() != "main" {
				t.Errorf("%v", err)
			}
		},
		"for reading": func(t testing.TB) {
			mustClose(t, Open(t, filepath.Join(dir, "c"), nil))
			Open(t, filepath.Join(dir, "c"), &db.Options{ReadOnly: true})
		},
		"removed": func(t testing.TB) {
			d := Open(t, filepath.Join(dir, "d"), nil)
			mustClose(t, d)
			if err := os.RemoveAll(filepath.Join(dir, "d")); err != nil {
				t.Errorf("%v", err)
			}
		},
		"verified in between": func(t testing.TB) {
			d := Open(t, filepath.Join(dir, "e"), nil)
			loaded(t, d, 10)
			Verify(t, d)
			mustClose(t, d)
			VerifyFolder(t, filepath.Join(dir, "e"), nil)
		},
		"with a listener until it is closed": func(t testing.TB) {
			closed := false
			Open(t, "", &db.Options{EventListener: func(_ context.Context, e *event.Event) {
				if closed {
					t.Errorf("%s after the end", e.Name)
				}
				closed = closed || e.Name == event.Closed
			}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			if said := failing(t, test); len(said) > 0 {
				t.Errorf("%q", said)
			}
		})
	}
	t.Run("searched in a cleanup", func(t *testing.T) {
		c := loaded(t, Open(t, "", nil), 10)
		t.Cleanup(func() { CheckSearches(t, c, db.Query{Key: "item 3"}) })
	})
}

func mustClose(t testing.TB, d *db.DB) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Errorf("%v", err)
	}
}

// A database that cannot be opened ends the test.
func TestNothingToOpen(t *testing.T) {
	went := false
	expect(t, failing(t, func(t testing.TB) {
		Open(t, t.(*fake).TB.TempDir(), &db.Options{MustExist: true})
		went = true
	}), "cannot be opened", "not a database")
	if went {
		t.Error("the test goes on")
	}
}

// damage changes a byte in the middle of the largest table of a database.
func damage(t testing.TB, dir string) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "store", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("tables %q, %v", tables, err)
	}
	var largest []byte
	var name string
	for _, table := range tables {
		b, err := os.ReadFile(table)
		if err != nil {
			t.Fatalf("%v", err)
		}
		if len(b) > len(largest) {
			name, largest = table, b
		}
	}
	largest[len(largest)/3] ^= 0x10
	if err := os.WriteFile(name, largest, 0o666); err != nil {
		t.Fatalf("%v", err)
	}
}

func TestDamageIsNoticed(t *testing.T) {
	dir := t.TempDir()
	expect(t, failing(t, func(t testing.TB) {
		d := Open(t, dir, nil)
		loaded(t, d, 2000)
		mustClose(t, d)
		damage(t, dir)
	}), "the database is damaged: ")
	expect(t, failing(t, func(t testing.TB) { VerifyFolder(t, dir, nil) }), "the database is damaged: ")
	d, err := db.Open(dir, nil)
	if err != nil {
		return // it cannot even be opened
	}
	defer d.Close()
	expect(t, failing(t, func(t testing.TB) { Verify(t, d) }), "the database is damaged: ")
	expect(t, failing(t, func(t testing.TB) { VerifyFolder(t, dir, nil) }), "cannot be verified",
		"opened again")
}

// A program that ignores the error of a write fails its test.
func TestFailedWriteIsNoticed(t *testing.T) {
	var full atomic.Bool
	broken := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && strings.HasSuffix(op.Path, ".log") && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return errors.New("broken disk")
		}
		return nil
	}))
	expect(t, failing(t, func(t testing.TB) {
		c := loaded(t, Open(t, "", &db.Options{FS: broken}), 10)
		full.Store(true)
		if _, err := c.Put(t.Context(), &db.Item{Key: "lost", Code: make([]byte, 4)}); !errors.Is(err,
			db.ErrFailed) {
			t.Errorf("the error is %v", err)
		}
		full.Store(false)
	}), "a write to disk failed during the test", "broken disk")
}

// A goroutine that outlives its database fails the test; one of the test itself does
// not.
func TestLeftGoroutineIsNoticed(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	go func() { <-stop }()
	if said := failing(t, func(t testing.TB) {
		Open(t, "", &db.Options{EventListener: func(context.Context,
			*event.Event) {
			go func() { <-stop }()
		}})
		go func() { <-stop }()
	}); len(said) > 0 {
		t.Errorf("%q", said)
	}
	afterwards = 10 * time.Millisecond
	defer func() { afterwards = time.Minute }()
	expect(t, failing(t, func(t testing.TB) { Open(t, "", &db.Options{FS: leaky{vfs.NewMem(), stop}}) }),
		"goroutines that it has started still run", "leaky")
}

// A leaky file system starts a goroutine whenever a folder is made.
type leaky struct {
	vfs.FS
	stop chan struct{}
}

func (l leaky) MkdirAll(dir string, perm os.FileMode) error {
	go func() { <-l.stop }()
	return l.FS.MkdirAll(dir, perm)
}

// A read that never ends keeps Close from returning, which would hang the test.
func TestEndlessCallIsNoticed(t *testing.T) {
	patience = 60 * time.Millisecond
	defer func() { patience = time.Minute }()
	var next func() (*db.Item, error, bool)
	var stop func()
	closed := make(chan struct{})
	expect(t, failing(t, func(t testing.TB) {
		d := Open(t, "", &db.Options{EventListener: func(_ context.Context, e *event.Event) {
			if e.Name == event.Closed {
				close(closed)
			}
		}})
		next, stop = iter.Pull2(loaded(t, d, 10).Items(t.Context(), ""))
		if _, err, ok := next(); err != nil || !ok {
			t.Errorf("%v", err)
		}
	}), "the test ends while calls of the database go on", "iter.Pull", "Items")
	stop()
	<-closed
}
