package db

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
)

// An item that has no code, as projections were 0 when it was written,
// gets none by a repair, and is not said to have lost one, whatever of others is lost.
func TestRepairOfItemsWithoutCode(t *testing.T) {
	longTest(t)
	whole := &patient{t: t, fs: vfs.NewMem(), dir: "db", rounding: true}
	d := mustOpen(t, whole.dir, &Options{FS: whole.fs})
	_, item := withoutCode(t, d)
	mustClose(t, d)
	d = mustOpen(t, whole.dir, whole.options())
	whole.before = hold(t, d)
	mustClose(t, d)
	p := whole.another()
	p.remake()
	p.sameStored("made again", p.sound("made again", nil))
	for _, kinds := range []string{
		string([]byte{codec.KindRows}), string([]byte{codec.KindSubstring, codec.KindCodes}),
		string([]byte{codec.KindRowCodes}), string([]byte{codec.KindProjection}), string([]byte{codec.KindCounters}),
	} {
		p := whole.another()
		p.store(func(kv *pebble.DB) {
			for _, kind := range []byte(kinds) {
				if err := kv.DeleteRange([]byte{kind}, []byte{kind + 1}, pebble.Sync); err != nil {
					t.Fatal(err)
				}
			}
		})
		lost, _ := p.repair(RepairOptions{})
		h := p.sound(kinds, func(_, key string) bool { return key != item.Key })
		if it := h.items["main"][item.Key]; it == nil || it.Code != nil || it.Codes != nil {
			t.Errorf("without %x: %+v", kinds, it)
		}
		if len(lost) > 0 && kinds[0] != codec.KindCounters {
			t.Errorf("without %x: lost %v", kinds, lost)
		}
	}
}
