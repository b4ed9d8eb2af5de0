package repair

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/fddhdb/fddhdb/db/internal/store"
)

// replace puts the new store in the place of the old one, by renames. The folder has, one after
// the other:
//
//	store/  repairing/store/          the old store, and the new one, which is verified
//	store/  repaired/                 both; store/ counts, and the next repair removes repaired/
//	damaged-TIME/  repaired/          the next opening or repair renames it (store.FinishRepair)
//	damaged-TIME/  store/             the new store counts
//
// Each rename is durable before the next one. The old store stays, under a name of freeName.
func (r *repairer) replace() error {
	fsys := r.disk.FS
	made := fsys.PathJoin(r.path(store.RepairingName), store.StoreName)
	// The order: the new store is durable under RepairedName before the old one moves. From there
	// on a crash at any point leaves a sound store or the old one. TestCrashesOfARepair of db.
	if err := store.SyncDir(fsys, made); err != nil {
		return err
	}
	if err := r.rename(made, r.path(store.RepairedName)); err != nil {
		return err
	}
	if !r.marked { // before there is a moment without a store
		if err := r.mark(); err != nil {
			return err
		}
	}
	to, err := r.freeName()
	if err != nil {
		return err
	}
	// From here to the end of FinishRepair the folder has RepairedName alone.
	// TestReadingBetweenTheStores of db opens it then.
	if err := r.rename(r.path(store.StoreName), r.path(to)); err != nil {
		return err
	}
	r.done.DamagedDir = to
	if err := store.FinishRepair(fsys, r.dir); err != nil {
		return err
	}
	return r.acknowledge(r.identity) // if that is not done now, opening reports it again
}

// rename renames a file or folder durably.
func (r *repairer) rename(from, to string) error {
	if err := r.disk.FS.Rename(from, to); err != nil {
		return err
	}
	return store.SyncDir(r.disk.FS, r.dir)
}

// freeName returns a name for the damaged store, with the time in UTC, that does not exist yet.
func (r *repairer) freeName() (string, error) {
	base := store.DamagedPrefix + time.Now().UTC().Format("20060102T150405Z")
	name := base
	for i := 2; ; i++ {
		_, err := r.disk.FS.Stat(r.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
		name = fmt.Sprintf("%s-%d", base, i)
	}
}
