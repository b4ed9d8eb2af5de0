package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// PruneOptions are the options of Prune.
type PruneOptions struct {
	// Keep is the number of newest backups of each kind that stay. Backups of a whole
	// database, of each collection, and index-only ones count apart, for each database.
	// 0 keeps all backups and deletes only objects that no backup needs.
	Keep int

	// DryRun deletes nothing, and reports what would be deleted.
	DryRun bool

	// Progress is called with the number of objects deleted of all objects to delete, in
	// StageDelete.
	Progress event.Progress
}

// StageDelete is the stage of a prune, for Progress.
const StageDelete = "delete"

// A Pruning reports what a prune has deleted, or with DryRun would have deleted.
type Pruning struct {
	Kept    []*Manifest `json:"kept"`    // oldest first, without files
	Deleted []*Manifest `json:"deleted"` // oldest first, without files
	Objects int         `json:"objects"` // deleted objects, of these backups and of interrupted ones
	Bytes   int64       `json:"bytes"`   // of the deleted objects, as stored
	// ids of backups with missing objects: they stay, and do not count as kept, while they are newer than
	// what must stay
	Damaged []string `json:"damaged"`
	Running int      `json:"running"` // running backups: their objects stay
}

// Prune deletes all but the newest backups of each kind, and then the objects that no
// backup needs. Backups and other prunes may run meanwhile. With an error part of the
// work may be done; the next prune does the rest. If a manifest cannot be read nothing
// is deleted, as it is unknown which objects it needs. If there are objects to delete
// but no manifest of a complete backup, the error is ErrNoBackup and nothing is
// deleted: the folder of the manifests may not be mounted. It takes about 200 bytes of
// memory for each object.
func Prune(ctx context.Context, in Store, opt PruneOptions) (*Pruning, error) {
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	p, err := prune(ctx, in, opt)
	if err != nil {
		return p, annotate(err, "prune")
	}
	return p, nil
}

// A pruner deletes objects that no backup needs. The proof that this is safe stands at
// writer; the pruner's part is the order of its steps:
//
//  1. It puts an empty plan, pruning/ID.json, which tells the time of the store.
//  2. It lists and reads the manifests in backups/; then the plans; then it lists
//     objects. So each object that a backup needs is in the list of objects, or is
//     missing.
//  3. It decides which backups to keep. A backup with a missing object, or with an
//     object in a plan, replaces no other.
//  4. Garbage is the listed objects that no manifest names, neither of a backup that is
//     kept nor of a running one; without the objects stored by a running backup. If
//     there is garbage and no manifest in backups/, the prune ends with an error. A
//     prune always keeps one manifest, so either no backup was ever completed, or the
//     manifests are lost or out of reach. A running backup makes no difference.
//     Otherwise it deletes the manifests of backups that are not kept.
//  5. It puts garbage as a plan. Then it lists running/ and backups/ once more, and
//     reads all manifests of the former and the new ones of the latter. It deletes the
//     objects of the plan that none of them names. It removes the plan, unless it has
//     failed, as its last deletions may then still be under way. It repeats this step
//     while there is more garbage than a plan holds.
//  6. It removes plans of others if step 2 has found none of their objects.
//
// A manifest in backups/ never changes, so none is read twice.
type pruner struct {
	store Store
	opt   PruneOptions
	id    string
	done  *Pruning
	plans []other // plans of others

	sizes map[Piece]int64    // objects that are there, with their stored bytes
	named map[Piece]struct{} // objects that manifests name
	known map[string]bool    // ids of backups whose manifests have been read
}

// other is a plan of another prune, and the time at which it was put.
type other struct {
	plan
	put time.Time
}

func prune(ctx context.Context, in Store, opt PruneOptions) (*Pruning, error) {
	if opt.Keep < 0 {
		return nil, fmt.Errorf("%w: %d backups to keep", ErrInvalid, opt.Keep)
	}
	if err := readMarker(ctx, in); err != nil {
		return nil, err
	}
	p := &pruner{
		store: in, opt: opt, id: newID(time.Now()), done: &Pruning{},
		sizes: map[Piece]int64{}, named: map[Piece]struct{}{}, known: map[string]bool{},
	}
	if !opt.DryRun {
		if err := p.plan(ctx, p.id, nil); err != nil {
			return nil, err
		}
		defer p.remove(ctx, p.id)
	}
	return p.done, p.run(ctx)
}

func (p *pruner) run(ctx context.Context) error {
	now, err := p.backups(ctx)
	if err != nil {
		return err
	}
	living, err := p.running(ctx, now)
	if err != nil {
		return err
	}
	p.done.Running = len(living)
	var garbage []Piece
	for o := range p.sizes {
		if _, needed := p.named[o]; !needed && !living[o.owner()] {
			garbage = append(garbage, o)
		}
	}
	if len(garbage) > 0 && len(p.known) == 0 {
		return fmt.Errorf("%w: it holds %d objects that none needs: none was deleted, as the manifests in %s may only be out of reach: "+
			"bring them back; or make a backup, after which prune deletes the rest; or delete the whole repository", ErrNoBackup, len(garbage), backups)
	}
	slices.Sort(garbage)
	if p.opt.DryRun {
		for _, o := range garbage {
			p.freed(o)
		}
		return nil
	}
	for _, m := range p.done.Deleted {
		if err := p.store.Delete(ctx, jsonName(backups, m.ID)); err != nil {
			return err
		}
	}
	total := int64(len(garbage))
	for some := range slices.Chunk(garbage, maxPlan) {
		if err := p.collect(ctx, now, some, total); err != nil {
			return err
		}
	}
	return p.removePlans(ctx, now)
}

// backups reads all manifests, plans and objects, and decides which backups to keep. It
// returns the time of the store.
func (p *pruner) backups(ctx context.Context) (now time.Time, err error) {
	found, err := ids(ctx, p.store, backups)
	if err != nil {
		return now, err
	}
	type manifest struct {
		*Manifest
		names []Piece
	}
	var all []manifest
	for _, id := range sorted(found) {
		m, err := readManifest(ctx, p.store, backups, id)
		if notThere(err) {
			continue // another prune has deleted it
		}
		if err != nil {
			return now, err
		}
		all = append(all, manifest{m.brief(), m.pieces()})
	}
	condemned, now, err := p.look(ctx)
	if err != nil {
		return now, err
	}
	kept := map[kind]int{}
	for _, m := range slices.Backward(all) {
		p.known[m.ID] = true
		if p.opt.Keep > 0 && kept[m.kind()] >= p.opt.Keep {
			p.done.Deleted = append(p.done.Deleted, m.Manifest)
			continue
		}
		whole, safe := true, true
		for _, o := range m.names {
			_, there := p.sizes[o]
			_, doomed := condemned[o]
			whole, safe = whole && there, safe && !doomed
		}
		if whole && safe {
			kept[m.kind()]++
		}
		if !whole {
			p.done.Damaged = append(p.done.Damaged, m.ID)
		}
		p.done.Kept = append(p.done.Kept, m.Manifest)
		p.names(m.names)
	}
	slices.Reverse(p.done.Kept)
	slices.Reverse(p.done.Deleted)
	slices.Reverse(p.done.Damaged)
	return now, nil
}

// look reads the plans of others and the objects. It returns the objects of the plans,
// and the time of the store.
func (p *pruner) look(ctx context.Context) (map[Piece]struct{}, time.Time, error) {
	others, put, err := plans(ctx, p.store)
	if err != nil {
		return nil, time.Time{}, err
	}
	now, ok := put[p.id]
	if !ok && !p.opt.DryRun {
		return nil, now, fmt.Errorf("fddhdb: prune: the store does not list what was put: %s",
			jsonName(pruning, p.id))
	}
	for _, o := range others {
		if o.ID != p.id {
			p.plans = append(p.plans, other{o, put[o.ID]})
		}
	}
	return named(others), now, p.store.List(ctx, objects, func(o Object) error {
		if piece, ok := pieceOf(o.Name); ok {
			p.sizes[piece] = o.Size
		}
		return nil
	})
}

// names records that a manifest names these objects.
func (p *pruner) names(names []Piece) {
	for _, o := range names {
		p.named[o] = struct{}{}
	}
}

// pieces returns the objects of a manifest, each once.
func (m *Manifest) pieces() []Piece {
	var all []Piece
	for i := range m.Files {
		all = append(all, m.Files[i].Pieces...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// running records the objects that running backups name, and returns the ids of these
// backups. It removes manifests of dead ones.
func (p *pruner) running(ctx context.Context, now time.Time) (map[string]bool, error) {
	found, err := ids(ctx, p.store, running)
	if err != nil {
		return nil, err
	}
	living := map[string]bool{}
	for _, id := range sorted(found) {
		if !p.opt.DryRun && now.Sub(found[id]) > stale {
			if err := p.store.Delete(ctx, jsonName(running, id)); err != nil {
				return nil, err
			}
			continue
		}
		m, err := readManifest(ctx, p.store, running, id)
		if notThere(err) {
			continue // it has ended
		}
		if err != nil {
			return nil, err
		}
		living[id] = true
		p.names(m.pieces())
	}
	return living, nil
}

// collect deletes garbage, except objects that a backup has come to need.
func (p *pruner) collect(ctx context.Context, now time.Time, garbage []Piece, total int64) error {
	id, deleting := newID(time.Now()), false
	defer func() {
		if !deleting {
			p.remove(ctx, id)
		}
	}()
	if err := p.plan(ctx, id, garbage); err != nil {
		return err
	}
	if _, err := p.running(ctx, now); err != nil { // before backups/: one may be completed in between
		return err
	}
	found, err := ids(ctx, p.store, backups)
	if err != nil {
		return err
	}
	for _, id := range sorted(found) {
		if p.known[id] {
			continue
		}
		m, err := readManifest(ctx, p.store, backups, id)
		if notThere(err) {
			continue
		}
		if err != nil {
			return err
		}
		p.known[id] = true
		p.names(m.pieces())
	}
	deleting = true                 // after an error some may be under way
	heard := make(chan struct{}, 1) // held while counting
	err = parallel(ctx, workers, func(yield func(func(context.Context) error) bool) {
		for _, o := range garbage {
			if _, needed := p.named[o]; needed {
				continue
			}
			if !yield(func(ctx context.Context) error {
				if err := p.store.Delete(ctx, o.object()); err != nil {
					return err
				}
				heard <- struct{}{}
				defer func() { <-heard }()
				p.freed(o)
				if p.opt.Progress != nil {
					p.opt.Progress(StageDelete, int64(p.done.Objects), total)
				}
				return nil
			}) {
				return
			}
		}
	})
	deleting = err != nil
	return err
}

func (p *pruner) freed(o Piece) {
	p.done.Objects++
	p.done.Bytes += p.sizes[o]
}

func (p *pruner) plan(ctx context.Context, id string, names []Piece) error {
	return writeJSON(ctx, p.store, jsonName(pruning, id), plan{Version, id, names})
}

// remove removes a plan of this prune. If that fails, a later prune removes it.
func (p *pruner) remove(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	_ = p.store.Delete(ctx, jsonName(pruning, id))
}

// removePlans removes plans of others with nothing left to delete, most likely of
// killed prunes. Their objects were there before the plans were put, and had gone when
// objects were listed. A plan stays as long as it names an object that a backup has
// come to need: it keeps other backups from using that object. A recent empty plan
// stays for the prune that needs the time.
func (p *pruner) removePlans(ctx context.Context, now time.Time) error {
	for _, o := range p.plans {
		if slices.ContainsFunc(o.Objects,
			func(name Piece) bool { _, there := p.sizes[name]; return there }) ||
			len(o.Objects) == 0 && now.Sub(o.put) < stale {
			continue
		}
		if err := p.store.Delete(ctx, jsonName(pruning, o.ID)); err != nil {
			return err
		}
	}
	return nil
}

// maxPlan bounds the objects of a plan, and so the time between reading manifests and
// the last deletion. Tests lower it.
var maxPlan = 20_000

// A plan lists the objects that a prune is about to delete, or is deleting. It never
// changes; a prune with more to delete has several. An empty plan only shows the time
// of the store.
type plan struct {
	Version int     `json:"version"`
	ID      string  `json:"id"`
	Objects []Piece `json:"objects"`
}

// plans reads all plans, and the time at which each was put.
func plans(ctx context.Context, s Store) ([]plan, map[string]time.Time, error) {
	found, err := ids(ctx, s, pruning)
	if err != nil {
		return nil, nil, err
	}
	var all []plan
	for _, id := range sorted(found) {
		name := jsonName(pruning, id)
		b, err := read(ctx, s, name, maxManifest)
		if notThere(err) {
			continue // it has been removed
		}
		if err != nil {
			return nil, nil, err
		}
		var p plan
		if err := json.Unmarshal(b, &p); err != nil {
			return nil, nil, damaged("%s: %w", name, err)
		}
		if err := checkVersion(name, p.Version); err != nil {
			return nil, nil, err
		}
		p.ID = id
		all = append(all, p)
	}
	return all, found, nil
}

// condemned returns the objects of all plans.
func condemned(ctx context.Context, s Store) (map[Piece]struct{}, error) {
	all, _, err := plans(ctx, s)
	if err != nil {
		return nil, err
	}
	return named(all), nil
}

// named returns the objects of plans.
func named(all []plan) map[Piece]struct{} {
	doomed := map[Piece]struct{}{}
	for _, p := range all {
		for _, o := range p.Objects {
			doomed[o] = struct{}{}
		}
	}
	return doomed
}
