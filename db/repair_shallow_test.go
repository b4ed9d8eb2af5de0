package db_test

import (
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// Features of another item are damage that only a deep look finds: a shallow repair leaves them,
// as Verify finds nothing, and any other makes what follows from them again.
func TestShallowRepair(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.exchangeFeatures()
	before := list(t, p.fs, p.dir)
	if lost, r := p.repair(db.RepairOptions{Shallow: true}); len(lost) > 0 || r.Damaged {
		t.Errorf("a shallow repair: %v, %+v", lost, r)
	}
	if after := list(t, p.fs, p.dir); after != before {
		t.Errorf("a shallow repair has left %s, before there was %s", after, before)
	}
	if _, r := p.repair(db.RepairOptions{}); !r.Damaged || r.DamagedDir == "" {
		t.Errorf("a repair: %+v", r)
	}
	v, err := db.VerifyFolder(ctx, p.dir, p.options(), db.VerifyOptions{Deep: true}, func(f db.Finding) error {
		t.Errorf("after it: %v", f)
		return nil
	})
	if err != nil || v.Items == 0 {
		t.Errorf("%+v, %v", v, err)
	}
}

// exchangeFeatures gives each item the features of the one before it, of each modality.
func (p *patient) exchangeFeatures() {
	p.t.Helper()
	p.store(func(kv *pebble.DB) {
		batch := kv.NewBatch()
		last := map[string][]byte{} // by collection and modality
		err := record.ForEachIn(kv, []byte{codec.KindFeatures}, []byte{codec.KindFeatures + 1}, func(key, value []byte) error {
			of := string(key[:5]) + string(key[len(key)-2:])
			before := last[of]
			last[of] = slices.Clone(value)
			if len(before) != len(value) {
				return nil
			}
			return batch.Set(key, before, nil)
		})
		if err == nil {
			err = batch.Commit(pebble.Sync)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	})
}
