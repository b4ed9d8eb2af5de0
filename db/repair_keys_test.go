package db_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
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
		if err := kv.Merge(codec.NumberKey(codec.KindRowKeys, 1, 0), e.Append(nil, false), pebble.Sync); err != nil {
			t.Fatal(err)
		}
		if err := kv.Delete(codec.ItemKey(1, gone), pebble.Sync); err != nil {
			t.Fatal(err)
		}
	})
	lost, _ := p.repair(db.RepairOptions{})
	if len(lost) != 2 || !strings.Contains(lost[1].Problem, "the rest of one that was deleted") {
		t.Errorf("lost %v", lost)
	}
	p.sound("repaired", func(_, key string) bool { return key == gone })
}
