package metamorphic

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
)

// A damage changes the files of a closed database. It removes only what can be derived
// from other records. So a repair must bring everything back.
type damage struct {
	kind byte // kind of the deleted records
	do   func(h *history) error

	// first: the code of an item, or the number of its revision, is lost with it, and the
	// revision that made the code may not be kept any more. So nothing is lost only if
	// there is no second revision.
	first bool

	// features: what is made from features is lost with it. So nothing is lost only if
	// these are stored, too.
	features bool
}

var damages = map[string]damage{
	"":            {do: func(*history) error { return nil }},
	"marker":      {do: func(h *history) error { return h.writeFile(db.MarkerName, "not a marker") }},
	"no marker":   {do: (*history).removeMarker},
	"manifest":    {do: (*history).spoilManifest},
	"keys":        {kind: codec.KindKey},
	"row keys":    {kind: codec.KindRowKeys},
	"rows":        {kind: codec.KindRows, features: true},
	"field rows":  {kind: codec.KindFieldRows},
	"codes":       {kind: codec.KindCodes, first: true},
	"code rows":   {kind: codec.KindCodeRows},
	"substrings":  {kind: codec.KindSubstring},
	"names":       {kind: codec.KindName},
	"row codes":   {kind: codec.KindRowCodes, first: true, features: true},
	"projections": {kind: codec.KindProjection, first: true, features: true},
	"statistics":  {kind: codec.KindStatistics},
	"outbox":      {kind: codec.KindOutbox},
	"pending":     {kind: codec.KindOnlineRows},
}

// repair damages the database, or with Crash the state after a crash, and repairs it.
// Nothing may be missing then.
func (h *history) repair(op *Op) error {
	wound, ok := damages[op.Damage]
	if !ok {
		return fmt.Errorf("there is no damage %q", op.Damage)
	}
	if wound.first && h.revised() || wound.features && h.withoutFeatures() {
		return errPassed
	}
	before, err := h.probe()
	if err != nil {
		return err
	}
	if err := h.hurt(op, &wound); err != nil {
		return err
	}
	damaged, err := h.repaired(op)
	if err != nil {
		return err
	}
	if err := h.changed(h.now.format); err != nil {
		return err
	}
	after, err := h.probe()
	if err != nil {
		return err
	}
	if err := sameAnswers(before, after); err != nil {
		return err
	}
	if !damaged {
		return errPassed
	}
	return nil
}

// hurt closes the database and damages it.
func (h *history) hurt(op *Op, wound *damage) error {
	crash := op.Crash && h.mem != nil && !h.options.NoSync
	if op.Damage == "manifest" { // without a manifest, all tables in the folder count
		if h.options.ReadOnly || crash {
			return errPassed
		}
		if err := h.d.Compact(h.ctx); err != nil {
			return err
		}
	}
	left := h.mem
	if crash {
		left = h.mem.crash(op)
		h.lost()
	}
	if err := h.close(); err != nil {
		return err
	}
	h.mem = left
	if wound.do != nil {
		return wound.do(h)
	}
	return h.deleteRecords(wound.kind, op.Seed, op.Percent)
}

// revised reports whether a space may have a second revision.
func (h *history) revised() bool {
	for _, c := range h.now.collections {
		for _, sp := range c.spaces {
			if h.learns() || sp.free || sp.revision > 1 {
				return true
			}
		}
	}
	return false
}

// withoutFeatures reports whether a collection is index-only.
func (h *history) withoutFeatures() bool {
	for _, c := range h.now.collections {
		if c.indexOnly {
			return true
		}
	}
	return false
}

// repaired repairs the database, sometimes after a dry run. It reports whether anything
// was damaged.
func (h *history) repaired(op *Op) (damaged bool, err error) {
	dir, o := h.dbOptions(h.name)
	o.ReadOnly = false
	run := func(dry bool) (*db.Repairing, error) {
		var lost []string
		r, err := db.Repair(h.ctx, dir, o, db.RepairOptions{DryRun: dry}, func(f db.Finding) error {
			if op.Damage != "manifest" || f.Record != "store" { // a finding of the kind store says that the losses are unknown
				lost = append(lost, f.String())
			}
			return nil
		})
		if err != nil || len(lost) > 0 {
			return nil, wrong(err, "dry run: %v; lost are %d: %s", dry, len(lost), lost[:min(3, len(lost))])
		}
		return r, nil
	}
	var trial *db.Repairing
	if op.Pinned {
		if trial, err = run(true); err != nil {
			return false, err
		}
	}
	r, err := run(false)
	if err != nil {
		return false, err
	}
	if op.Damage == "" && r.Damaged || op.Damage != "" && damages[op.Damage].do != nil && !r.Damaged {
		return false, fmt.Errorf("damaged: %v", r.Damaged)
	}
	items := 0
	for _, c := range h.now.collections {
		items += len(c.items)
	}
	if r.Items != items {
		return false, fmt.Errorf("%d items after the repair, want %d", r.Items, items)
	}
	if trial != nil && (trial.Damaged != r.Damaged || trial.Items != r.Items || trial.CodesKept != r.CodesKept || trial.CodesMade != r.CodesMade) {
		return false, fmt.Errorf("%+v, the trial said %+v", r, trial)
	}
	if r.DamagedDir != "" {
		h.imports = map[source]*staging{} // a repair removes them
		fsys, dir := h.folder(h.name)
		err = fsys.RemoveAll(fsys.PathJoin(dir, r.DamagedDir))
	}
	return r.Damaged, err
}

// deleteRecords deletes the given percentage of the records of a kind.
func (h *history) deleteRecords(kind byte, seed uint64, percent int) error {
	return h.store(func(s *pebble.DB) error {
		it, err := s.NewIter(&pebble.IterOptions{LowerBound: []byte{kind}, UpperBound: []byte{kind + 1}})
		if err != nil {
			return err
		}
		random := newRand(seed)
		b := s.NewBatch()
		defer b.Close()
		for ok := it.First(); ok; ok = it.Next() {
			if random.IntN(100) < percent {
				err = errors.Join(err, b.Delete(it.Key(), nil))
			}
		}
		if err = errors.Join(err, it.Close()); err != nil {
			return err
		}
		return b.Commit(pebble.Sync)
	})
}

func (h *history) removeMarker() error {
	fsys, dir := h.folder(h.name)
	if err := fsys.Remove(fsys.PathJoin(dir, db.MarkerName)); err != nil {
		return err
	}
	return syncFolder(fsys, dir)
}

// spoilManifest makes a store forget which tables it has.
func (h *history) spoilManifest() error {
	fsys, dir := h.folder(h.name)
	store := fsys.PathJoin(dir, "store")
	names, err := fsys.List(store)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "MANIFEST-") })
	if len(names) == 0 {
		return errors.New("there is no manifest")
	}
	f, err := fsys.Create(fsys.PathJoin(store, slices.Max(names)), vfs.WriteCategoryUnspecified) // older manifests may be left
	if err != nil {
		return err
	}
	_, err = f.Write([]byte("spoilt"))
	return errors.Join(err, f.Sync(), f.Close())
}
