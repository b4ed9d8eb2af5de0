package metamorphic

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/test/metamorphic/program"
)

// A damage is done to the files of a database that is closed. None takes anything away that
// nothing else says: so a repair must bring everything back.
type damage struct {
	kind byte // of records that are deleted
	do   func(h *history) error

	// brought: codes that items have brought go with it, and are told by nothing else.
	brought bool
}

var damages = map[string]damage{
	"":            {do: func(*history) error { return nil }},
	"marker":      {do: func(h *history) error { return h.writeFile(db.MarkerName, "not a marker") }},
	"no marker":   {do: (*history).removeMarker},
	"manifest":    {do: (*history).spoilManifest},
	"keys":        {kind: codec.KindKey},
	"row keys":    {kind: codec.KindRowKeys},
	"rows":        {kind: codec.KindRows},
	"field rows":  {kind: codec.KindFieldRows},
	"field words": {kind: codec.KindFieldWords},
	"codes":       {kind: codec.KindCodes, brought: true},
	"code rows":   {kind: codec.KindCodeRows},
	"substrings":  {kind: codec.KindSubstring},
	"names":       {kind: codec.KindName},
	"row codes":   {kind: codec.KindRowCodes},
	"projections": {kind: codec.KindProjection},
	"statistics":  {kind: codec.KindStatistics},
	"retraction":  {kind: codec.KindRetraction},
	"pending":     {kind: codec.KindOnlineRows},
	"entries":     {kind: codec.KindEntries},
	"stale":       {kind: codec.KindStale},
}

// repair damages the database, or with Crash what a crash would leave of it, and has it
// repaired: nothing may be missing then.
func (h *history) repair(op *program.Op) error {
	wound, ok := damages[op.Damage]
	if !ok {
		return fmt.Errorf("there is no damage %q", op.Damage)
	}
	store := wound.kind != 0 || op.Damage == "manifest"
	for _, c := range h.now.collections {
		if store && c.indexOnly || wound.brought && c.codesOnly() {
			return errPassed // it would be refused, or cost items
		}
	}
	before, err := h.probe()
	if err != nil {
		return err
	}
	if err := h.hurt(op, &wound); err != nil {
		return err
	}
	r, err := h.repaired(op)
	if err != nil {
		return err
	}
	if r.DamagedDir != "" {
		h.remade()
	}
	if err := h.changed(); err != nil {
		return err
	}
	after, err := h.probe()
	if err != nil {
		return err
	}
	if r.DamagedDir != "" {
		inOrderOfKeys(before)
		inOrderOfKeys(after)
	}
	if err := sameAnswers(before, after); err != nil {
		return err
	}
	if !r.Damaged {
		return errPassed
	}
	return nil
}

// remade takes over that all codes of models have been made again, by the present revision
// of each space, and that codes which items have brought have got their numbers anew.
func (h *history) remade() {
	h.now = h.now.fork()
	for _, name := range names(h.now) {
		c := h.now.edit(name)
		for _, sp := range c.spaces {
			codes := sp.codes
			switch {
			case c.codesOnly():
				sp.ages, sp.carried, sp.nextAge, sp.codes = map[string]int{}, map[string]int{}, 0,
					map[string]*coded{}
				for _, key := range c.order {
					sp.give(key, codes[key].code)
				}
			case h.revised(sp):
				for key, code := range codes {
					if !code.labelled {
						codes[key] = &coded{}
					}
				}
			}
		}
	}
}

// inOrderOfKeys puts hits that are equally near in order of their keys, and leaves out those
// of revisions whose codes may have changed.
func inOrderOfKeys(answers map[string][]db.Hit) {
	for what, hits := range answers {
		if !strings.Contains(what, "revision 1,") {
			delete(answers, what)
			continue
		}
		slices.SortStableFunc(hits, func(a, b db.Hit) int {
			return cmp.Or(cmp.Compare(a.Distance, b.Distance), strings.Compare(a.Key, b.Key))
		})
	}
}

// hurt closes the database and damages it.
func (h *history) hurt(op *program.Op, wound *damage) error {
	crash := op.Crash && h.mem != nil && !h.options.NoSync
	if op.Damage == "manifest" { // without one, all tables in the folder count
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

// revised reports whether there may be a second revision of a space.
func (h *history) revised(sp *space) bool { return h.learns() || sp.free || sp.revision > 1 }

// repaired has the database repaired, sometimes after a trial.
func (h *history) repaired(op *program.Op) (*report.Repairing, error) {
	dir, o := h.dbOptions(h.name)
	o.ReadOnly = false
	run := func(dry bool) (*report.Repairing, error) {
		var lost []string
		r, err := db.Repair(h.ctx, dir, o, db.RepairOptions{DryRun: dry}, func(f report.Finding) error {
			if op.Damage != "manifest" || f.Record != "store" { // which says that nobody knows
				lost = append(lost, f.String())
			}
			return nil
		})
		if err != nil || len(lost) > 0 {
			return nil, wrong(err, "dry run: %v; lost are %d: %s", dry, len(lost), lost[:min(3, len(lost))])
		}
		return r, nil
	}
	var trial *report.Repairing
	if op.Pinned {
		var err error
		if trial, err = run(true); err != nil {
			return nil, err
		}
	}
	r, err := run(false)
	if err != nil {
		return nil, err
	}
	if op.Damage == "" && r.Damaged || op.Damage != "" && damages[op.Damage].do != nil && !r.Damaged {
		return nil, fmt.Errorf("damaged: %v", r.Damaged)
	}
	items := 0
	for _, c := range h.now.collections {
		items += len(c.items)
	}
	if r.Items != items {
		return nil, fmt.Errorf("%d items after the repair, want %d", r.Items, items)
	}
	if trial != nil && (trial.Damaged != r.Damaged || trial.Items != r.Items ||
		trial.CodesKept != r.CodesKept || trial.CodesMade != r.CodesMade) {
		return nil, fmt.Errorf("%+v, the trial said %+v", r, trial)
	}
	if r.DamagedDir != "" {
		fsys, dir := h.folder(h.name)
		err = fsys.RemoveAll(fsys.PathJoin(dir, r.DamagedDir))
	}
	return r, err
}

// deleteRecords deletes records of a kind, so many of a hundred.
func (h *history) deleteRecords(kind byte, seed uint64, percent int) error {
	return h.store(func(s *pebble.DB) error {
		it, err := s.NewIter(&pebble.IterOptions{LowerBound: []byte{kind}, UpperBound: []byte{kind + 1}})
		if err != nil {
			return err
		}
		random := program.NewRand(seed)
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
	// earlier ones may be left
	f, err := fsys.Create(fsys.PathJoin(store, slices.Max(names)), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte("spoilt"))
	return errors.Join(err, f.Sync(), f.Close())
}

// changed opens a database whose files have been changed, and checks that it holds everything as before.
func (h *history) changed() error {
	h.now, h.past = h.now.fork(), nil
	if err := h.open(nil); err != nil {
		return err
	}
	if err := h.check(nil); err != nil {
		return err
	}
	var err error
	if h.now.sequence, err = h.sequence(); err != nil {
		return err
	}
	return h.verify(nil)
}

// store opens the store of the closed database, and calls f with it.
func (h *history) store(f func(*pebble.DB) error) error {
	fsys, dir := h.folder(h.name)
	s, err := pebble.Open(fsys.PathJoin(dir, "store"), &pebble.Options{
		FS: fsys, FormatMajorVersion: pebble.FormatValueSeparation, ErrorIfNotExists: true,
		DisableAutomaticCompactions: true,
		Merger: &pebble.Merger{Name: "fddhdb.blocks-and-layers",
			Merge: func(key, value []byte) (pebble.ValueMerger, error) {
				m, err := codec.NewMerger(key, value)
				return merging{m}, err
			}},
		Logger: silent{},
	})
	if err != nil {
		return err
	}
	err = f(s)
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	return err
}

// merging adapts codec.Merger to the interface of the store.
type merging struct{ m *codec.Merger }

func (v merging) MergeNewer(value []byte) error { v.m.Newer(value); return nil }
func (v merging) MergeOlder(value []byte) error { v.m.Older(value); return nil }
func (v merging) Finish(includesBase bool) ([]byte, io.Closer, error) {
	b, err := v.m.Finish(includesBase)
	return b, nil, err
}

type silent struct{}

func (silent) Infof(string, ...any)              {}
func (silent) Errorf(string, ...any)             {}
func (silent) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// writeFile writes a file of the database, and syncs it.
func (h *history) writeFile(name, text string) error {
	fsys, dir := h.folder(h.name)
	f, err := fsys.Create(fsys.PathJoin(dir, name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err = f.Write([]byte(text)); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// syncFolder syncs the entries of a folder, where folders can be synced.
func syncFolder(fsys vfs.FS, dir string) error {
	if fsys == vfs.Default {
		return nil // no crash is tried on such systems
	}
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}
