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
			c, err := d.CreateCollection(ctx, name, db.Schema{Bits: 16})
			if err != nil {
				t.Fatal(err)
			}
			putAll(t, c, dbkit.CodeItems(10, 16, 1, nil))
		}
		p.before = hold(t, d)
		dbkit.MustClose(t, d)
		key := codec.CollectionKey(codec.KindCollection, 2)
		again, err := record.DecodeDescriptor([]byte(p.before.stored[string(key)]))
		if err != nil {
			t.Fatal(err)
		}
		again.Name = name
		b, err := again.Encode()
		if err != nil {
			t.Fatal(err)
		}
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
