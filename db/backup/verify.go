package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// VerifyOptions are the options of Verify.
type VerifyOptions struct {
	// ID is the id of the only backup to verify, or its beginning; "" for all.
	ID string

	// Progress is called with the number of objects read of all objects, in StageRead.
	Progress event.Progress
}

// StageRead is the stage of a verification, for Progress.
const StageRead = "read"

// A Finding is a defect of a repository.
type Finding struct {
	Backup  string `json:"backup"`  // id of the oldest backup that it harms
	Backups int    `json:"backups"` // number of backups that it harms
	Object  string `json:"object"`  // its name in the store
	Problem string `json:"problem"` // in words
}

// String returns the finding on one line.
func (f Finding) String() string { return "backup " + f.Backup + ": " + f.Problem }

// A Verification reports what Verify has read.
type Verification struct {
	Findings int   `json:"-"`
	Backups  int   `json:"backups"`
	Objects  int   `json:"objects"` // read objects
	Bytes    int64 `json:"bytes"`   // of the read objects, as stored
	// objects that no backup needs, such as of interrupted ones: no damage, Prune deletes them
	Unneeded      int     `json:"unneeded"`
	UnneededBytes int64   `json:"unneeded_bytes"` // of the unneeded objects, as stored
	Seconds       float64 `json:"seconds"`
}

// Verify reads every object of every backup, or of one backup, each object once. It
// calls found for every missing or damaged object, one call at a time, unless found is
// nil. An error of found ends Verify, which returns it. Backups and prunes may run
// meanwhile; a backup that is deleted meanwhile is left out. A store without a
// repository gives ErrNotRepository; a repository or a manifest of a newer version
// gives ErrVersion; a repository with pieces of backups but no manifest gives
// ErrNoBackup. It takes about 200 bytes of memory for each object.
//
// Verify does not check the database inside a backup. db.Restore does.
func Verify(ctx context.Context, in Store, opt VerifyOptions,
	found func(Finding) error) (*Verification, error) {
	if found == nil {
		found = func(Finding) error { return nil }
	}
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	v := &verifier{store: in, opt: opt, found: found, needed: map[Piece]*need{},
		missing: map[Piece]struct{}{}}
	start := time.Now()
	err := v.run(ctx)
	v.done.Seconds = time.Since(start).Seconds()
	return &v.done, annotate(err, "verify backups")
}

// verifier is the state of one verification.
type verifier struct {
	store Store
	opt   VerifyOptions
	found func(Finding) error
	done  Verification

	mu      sync.Mutex         // guards done and missing, and serialises calls of found and Progress
	needed  map[Piece]*need    // objects that manifests need
	missing map[Piece]struct{} // needed objects that were not listed
}

// need is what manifests say about an object.
type need struct {
	id    string // id of the oldest backup with the object
	count int    // number of these backups
	size  int    // bytes of the piece
}

func (v *verifier) run(ctx context.Context) error {
	all, err := v.chosen(ctx)
	if err != nil {
		return err
	}
	for _, id := range all {
		m, err := readManifest(ctx, v.store, backups, id)
		switch {
		case notThere(err): // pruned meanwhile
			continue
		case errors.Is(err, ErrDamaged):
			err = v.report(Finding{Backup: id, Backups: 1, Object: jsonName(backups, id),
				Problem: problem(err)})
		case err == nil:
			v.done.Backups++
			err = v.manifest(m)
		}
		if err != nil {
			return err
		}
	}
	living, err := ids(ctx, v.store, running)
	if err != nil {
		return err
	}
	for p := range v.needed {
		v.missing[p] = struct{}{}
	}
	if err := v.store.List(ctx, objects, func(o Object) error {
		p, ok := pieceOf(o.Name)
		if !ok {
			return nil
		}
		if _, is := v.needed[p]; is {
			delete(v.missing, p)
		} else if _, is := living[p.owner()]; !is && v.opt.ID == "" {
			v.done.Unneeded++
			v.done.UnneededBytes += o.Size
		}
		return nil
	}); err != nil {
		return err
	}
	if len(all) == 0 && v.done.Unneeded > 0 {
		if err := manifestsLost(ctx, v.store); err != nil {
			return err
		}
	}
	if err := v.objects(ctx); err != nil || len(v.missing) == 0 {
		return err
	}
	return v.reportMissing(ctx, all)
}

// chosen returns the ids of the backups to verify.
func (v *verifier) chosen(ctx context.Context) ([]string, error) {
	if err := readMarker(ctx, v.store); err != nil {
		return nil, err
	}
	found, err := ids(ctx, v.store, backups)
	if err != nil || v.opt.ID == "" {
		return sorted(found), err
	}
	id, err := match(sorted(found), v.opt.ID)
	return []string{id}, err
}

// manifest records the objects that a manifest needs.
func (v *verifier) manifest(m *Manifest) error {
	for f := range m.Files {
		file := &m.Files[f]
		for i, p := range file.Pieces {
			n := v.needed[p]
			if n == nil {
				n = &need{id: m.ID, size: file.pieceSize(i)}
				v.needed[p] = n
			}
			n.count++
			if n.size != file.pieceSize(i) {
				if err := v.report(Finding{m.ID, 1, p.object(),
					fmt.Sprintf("%s: %s is %d bytes there and %d elsewhere", file.Path, p.object(),
						file.pieceSize(i), n.size)}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// objects reads all needed objects that are there.
func (v *verifier) objects(ctx context.Context) error {
	there := make([]Piece, 0, len(v.needed))
	for p := range v.needed {
		if _, gone := v.missing[p]; !gone {
			there = append(there, p)
		}
	}
	slices.Sort(there)
	return parallel(ctx, workers, func(yield func(func(context.Context) error) bool) {
		for _, p := range there {
			if !yield(func(ctx context.Context) error { return v.object(ctx, p, len(there)) }) {
				return
			}
		}
	})
}

func (v *verifier) object(ctx context.Context, p Piece, total int) error {
	n := v.needed[p]
	stored, err := readPiece(ctx, v.store, p, n.size, func([]byte) error { return nil })
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case errors.Is(err, errMissing):
		v.missing[p] = struct{}{}
	case errors.Is(err, ErrDamaged):
		if err := v.report(Finding{n.id, n.count, p.object(), problem(err)}); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	v.done.Objects++
	v.done.Bytes += stored
	if v.opt.Progress != nil {
		v.opt.Progress(StageRead, int64(v.done.Objects), int64(total))
	}
	return nil
}

// reportMissing reports missing objects that are still needed: a backup that was pruned
// meanwhile needs nothing.
func (v *verifier) reportMissing(ctx context.Context, chosen []string) error {
	gone := map[Piece]*need{}
	for _, id := range chosen {
		m, err := readManifest(ctx, v.store, backups, id)
		if notThere(err) || errors.Is(err, ErrDamaged) {
			continue
		}
		if err != nil {
			return err
		}
		for _, p := range m.pieces() {
			if _, is := v.missing[p]; !is {
				continue
			}
			if gone[p] == nil {
				gone[p] = &need{id: id}
			}
			gone[p].count++
		}
	}
	for _, p := range sorted(gone) {
		if err := v.report(Finding{gone[p].id, gone[p].count, p.object(),
			p.object() + " is missing"}); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) report(f Finding) error {
	v.done.Findings++
	return v.found(f)
}

// problem returns the text of an error for a finding.
func problem(err error) string {
	return strings.ReplaceAll(err.Error(), ErrDamaged.Error()+": ", "")
}
