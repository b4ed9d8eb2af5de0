package spool

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/bulk"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/internal/testfs"
	"github.com/fddhdb/fddhdb/model"
)

// A session is an open Spool of a test.
type session struct {
	*Spool
	items   *bulk.Items
	skipped map[int]string // by earlier sessions
}

func openSession(t *testing.T, fsys vfs.FS, d *record.Descriptor) session {
	t.Helper()
	cfg := &store.Config{FS: fsys, ReserveBytes: -1}
	cfg.Room = store.NewReserve(cfg, "db")
	x := session{items: bulk.New(state.Collection{}), skipped: map[int]string{}}
	var err error
	x.Spool, err = (Folder{fsys, "imports"}).Open(t.Context(), Origin{Source: "s"}, Options{
		Engine: store.NewEngine(cfg, "db"), Descriptor: d, Items: x.items,
		Skipped: func(row int, why string) { x.skipped[row] = why },
	})
	if err != nil {
		t.Fatal(err)
	}
	x.Spool.ChunkBytes = 200
	return x
}

// The rows of several sessions are read back as they were, and a chunk that is damaged meanwhile
// gives an error with the remedy.
func TestSpool(t *testing.T) {
	d := &record.Descriptor{
		Modalities: []record.Modality{{Name: "image", Dim: 3}},
		Fields:     []record.Field{{Name: "n", Type: record.Int}},
	}
	item := func(i int) *record.Item {
		it := &record.Item{Key: fmt.Sprint("k", i), Labels: []string{fmt.Sprint("l", i%7)}, Payload: []byte(fmt.Sprint("payload ", i))}
		if i%3 > 0 {
			it.Vectors = []model.Vector{model.Dense([]float32{float32(i), 2, 3})}
			it.Fields = []codec.Field{{ID: 0, Value: int64(i)}}
		}
		return it
	}
	fsys := vfs.NewMem()
	const sessions, rows = 3, 25
	for n := range sessions {
		x := openSession(t, fsys, d)
		if x.Rows() != n*rows || x.Items() != n*(rows-1) || len(x.skipped) != n || x.Committed() {
			t.Fatalf("session %d continues at row %d, item %d, skipped %v", n, x.Rows(), x.Items(), x.skipped)
		}
		for i := range rows {
			var err error
			if i == 5 {
				err = x.Skip("bad\xff " + strings.Repeat("x", 2*maxSkipBytes))
			} else {
				err = x.Put(item(x.Rows()))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	x := openSession(t, fsys, d)
	for row, why := range x.skipped {
		if row%rows != 5 || !strings.HasPrefix(why, "bad ") || len(why) > maxSkipBytes {
			t.Errorf("row %d was skipped: %s", row, why)
		}
	}
	if err := x.Settle(d); err != nil {
		t.Fatal(err)
	}
	readBack := func() error {
		row := 0
		return x.items.Each(t.Context(), bulk.RecordPart|bulk.VectorPart, 0, x.items.Len(), func(i int, it *record.Item) error {
			if row%rows == 5 {
				row++
			}
			got := *it
			x.items.SetKeyAndCode(i, &got)
			if want := item(row); got.Key != want.Key || !got.Equal(want) {
				t.Errorf("row %d is %v, not %v", row, &got, want)
			}
			row++
			return nil
		})
	}
	if err := readBack(); err != nil {
		t.Fatal(err)
	}
	path := x.chunks[4].file.path
	testfs.Flip(t, fsys, path, x.chunks[4].at+x.chunks[4].offset(chunkRecords)+9)
	if err := readBack(); !errors.Is(err, fault.ErrStaged) || !errors.Is(err, fault.ErrCorrupt) || !strings.Contains(err.Error(), "begin the import again") {
		t.Errorf("a damaged chunk: %v", err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}

// Tidy leaves the promise of a commit that the database has, and removes the others. The promise
// says that an import is committed also when its items have been removed.
func TestPromise(t *testing.T) {
	fsys := vfs.NewMem()
	folder := Folder{fsys, "imports"}
	d := &record.Descriptor{Bits: 16}
	open := func() session { return openSession(t, fsys, d) }
	x := open()
	for i := range 30 {
		code := codec.NewCode(16)
		code.SetBytes([]byte{byte(i), 1})
		if err := x.Put(&record.Item{Code: code}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(x.Skip("bad"), x.Settle(d), x.Promise(8)); err != nil {
		t.Fatal(err)
	}
	x.Withdraw()
	if p, err := folder.Promised(x.name); err != nil || p != (Promise{}) {
		t.Fatalf("after withdraw: %+v, %v", p, err)
	}
	if err := errors.Join(x.Promise(8), x.Close()); err != nil {
		t.Fatal(err)
	}
	never := func(dir string, err error) { t.Errorf("%s is left: %v", dir, err) }
	if err := folder.Tidy(8, never); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		if any, err := folder.RemoveItems(x.name); err != nil || any != want {
			t.Fatalf("removed items: %v, %v", any, err)
		}
		if x = open(); !x.Committed() || x.Rows() != 31 || x.Items() != 30 {
			t.Fatalf("committed: %v, row %d, item %d", x.Committed(), x.Rows(), x.Items())
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := folder.Tidy(7, never); err != nil {
		t.Fatal(err)
	}
	if x = open(); x.Committed() || x.Rows() != 0 {
		t.Fatalf("committed: %v, row %d", x.Committed(), x.Rows())
	}
	if err := x.Remove(); err != nil {
		t.Fatal(err)
	}
	if names, err := folder.list(); err != nil || len(names) > 0 {
		t.Errorf("%v is left, %v", names, err)
	}
}
