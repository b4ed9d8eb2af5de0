package db_test

import (
	"errors"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// A database may be closed while somebody imports, who hears of it; what has been put
// until then is staged.
func TestCloseDuringAnImport(t *testing.T) {
	w := newWorld(t, db.Schema{Bits: 16}, true)
	im := mustImport(t, w.c, db.ImportOptions{})
	begun, ended := make(chan bool), make(chan error)
	go func() {
		for i := 0; ; i++ {
			if err := im.Put(&db.Item{Code: []byte{byte(i), byte(i >> 8)}}); err != nil {
				ended <- err
				return
			}
			if i == 100 {
				close(begun)
			}
		}
	}()
	<-begun
	if err := w.d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, db.ErrClosed) {
		t.Errorf("Put: %v", err)
	}
	put := im.Rows()
	if put < 100 || put != im.Items() || im.Bytes() == 0 {
		t.Errorf("%d rows, %d items, %d bytes", put, im.Items(), im.Bytes())
	}
	for what, err := range map[string]error{
		"Put": im.Put(&db.Item{Code: []byte{1, 2}}), "Skip": im.Skip("no"), "RegisterLabels": im.RegisterLabels([]string{"a"}),
		"Commit": im.Commit(ctx), "Discard": im.Discard(), "Close": im.Close(),
	} {
		if !errors.Is(err, db.ErrClosed) {
			t.Errorf("%s after Close: %v", what, err)
		}
	}
	w.d = dbkit.MustOpen(t, "db", &db.Options{FS: w.fs, MustExist: true})
	w.c = dbkit.MustCollection(t, w.d, "main")
	im = mustImport(t, w.c, db.ImportOptions{})
	if im.Rows() != put {
		t.Errorf("goes on at row %d, not %d", im.Rows(), put)
	}
	if err := im.Discard(); err != nil {
		t.Fatal(err)
	}
}
