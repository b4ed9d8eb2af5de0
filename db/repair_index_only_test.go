package db_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// Nothing in an index-only copy tells what its codes are made of: a damaged one is refused,
// and stays as it is, also where its descriptor is lost. One that is sound, and has lost its
// marker, gets another.
func TestRepairOfIndexOnly(t *testing.T) {
	p := &patient{t: t, fs: vfs.NewMem(), dir: "index-only"}
	is := indexOnlyOf(t, manyKinds(t, &db.Options{FS: p.fs}), &db.Options{FS: p.fs})
	p.before = hold(t, is)
	dbkit.MustClose(t, is)
	for _, kind := range []byte{codec.KindRowCodes, codec.KindCollection} {
		q := p.another()
		for key := range p.before.stored {
			if key[0] == kind {
				q.put([]byte(key), nil)
			}
		}
		before := list(t, q.fs, q.dir)
		_, err := db.Repair(ctx, q.dir, q.options(), db.RepairOptions{}, nil)
		if !errors.Is(err, db.ErrCorrupt) || !strings.Contains(err.Error(), "make it again from its source") {
			t.Errorf("without %02x: %v", kind, err)
		}
		if after := list(t, q.fs, q.dir); after != before {
			t.Errorf("without %02x: %s, before %s", kind, after, before)
		}
	}
	must(t, p.fs.Remove(p.fs.PathJoin(p.dir, store.MarkerName)))
	if lost, r := p.repair(db.RepairOptions{}); len(lost) > 0 || !r.Damaged || r.DamagedDir != "" {
		t.Errorf("%+v, lost %v", r, lost)
	}
}
