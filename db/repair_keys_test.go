package db_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// The record of a deleted item has come back, with the key that another item has now. It is in
// no set of rows, so the repair leaves it out, with its entry in the block of keys.
func TestRepairOfTheRestOfADeletion(t *testing.T) {
	p := smallPatient(t) // without a set of live rows
	gone, kept := "", ""
	for key, row := range p.before.rows["main"] {
		switch row {
		case 5:
			gone = key
		case 6:
			kept = key
		}
	}
	p.store(func(kv *pebble.DB) {
		e := codec.NewBlockEdit(-1)
		e.Set(5, []byte(kept))
		must(t, kv.Merge(codec.NumberKey(codec.KindRowKeys, 1, 0), e.Append(nil, false), pebble.Sync))
		must(t, kv.Delete(codec.ItemKey(1, gone), pebble.Sync))
	})
	lost, _ := p.repair(db.RepairOptions{})
	if len(lost) != 2 || !strings.Contains(lost[1].Problem, "the rest of one that was deleted") {
		t.Errorf("lost %v", lost)
	}
	p.sound("repaired", func(_, key string) bool { return key == gone })
}

// Two items have one key, and it leads to neither: the later one keeps it.
func TestRepairOfAKeyOfTwoItems(t *testing.T) {
	p := newPatient(t)
	earlier, later := "k25", "k26"
	p.store(func(kv *pebble.DB) {
		e := codec.NewBlockEdit(-1)
		e.Set(byte(p.before.rows["main"][earlier]), []byte(later))
		must(t, kv.Merge(codec.NumberKey(codec.KindRowKeys, 1, 0), e.Append(nil, false), pebble.Sync))
		must(t, kv.Delete(codec.ItemKey(1, later), pebble.Sync))
	})
	if lost, _ := p.repair(db.RepairOptions{}); len(lost) != 3 || !strings.Contains(lost[1].Problem, `its key "k26" is that of another item`) {
		t.Errorf("lost %v", lost)
	}
	p.sound("repaired", func(collection, key string) bool {
		return collection == "main" && (key == earlier || strings.HasPrefix(key, "lost+found/"))
	})
}

// The row that a key leads to is damaged, and beyond all rows, as is that of a record that is
// no item: nothing is lost, and the collection takes further items.
func TestRepairOfARowBeyondAll(t *testing.T) {
	p := smallPatient(t)
	p.put(codec.ItemKey(1, "5"), []byte{0xff, 0xff, 0xff, 0xff})
	p.put(codec.NumberKey(codec.KindItem, 1, record.MaxRows-1), []byte("garbage"))
	if lost, _ := p.repair(db.RepairOptions{}); len(lost) > 0 {
		t.Errorf("lost %v", lost)
	}
	p.sound("repaired", nil)
	d := dbkit.MustOpen(t, p.dir, p.options())
	defer dbkit.MustClose(t, d)
	c := dbkit.MustCollection(t, d, "main")
	if _, err := c.Put(ctx, dbkit.CodeItems(1, 16, 2, nil)[0]); err != nil {
		t.Error(err)
	}
}
