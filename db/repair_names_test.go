package db_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// Two collections have one name, as when one that was dropped has come back: the later one gets
// another name, also where the name is as long as can be.
func TestRepairOfNames(t *testing.T) {
	for _, name := range []string{"main", strings.Repeat("я", record.MaxNameBytes/2)} {
		p := &patient{t: t, fs: vfs.NewMem(), dir: "db"}
		d := dbkit.MustOpen(t, p.dir, &db.Options{FS: p.fs})
		for _, name := range []string{name, "other"} {
			c := need(d.CreateCollection(ctx, name, db.Schema{Bits: 16}))(t)
			putAll(t, c, dbkit.CodeItems(10, 16, 1, nil))
		}
		p.before = hold(t, d)
		dbkit.MustClose(t, d)
		key := codec.CollectionKey(codec.KindCollection, 2)
		again := need(record.DecodeDescriptor([]byte(p.before.stored[string(key)])))(t)
		again.Name = name
		b := need(again.Encode())(t)
		p.put(key, b)
		lost, _ := p.repair(db.RepairOptions{})
		if len(lost) != 1 || !strings.Contains(lost[0].Problem, "this one is renamed") {
			t.Errorf("lost %v", lost)
		}
		delete(p.before.items, "other")
		h := p.sound("repaired", nil)
		if len(h.items) != 2 {
			t.Errorf("%d collections", len(h.items))
		}
	}
}
