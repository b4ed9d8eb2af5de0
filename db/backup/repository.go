package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// workers is the number of objects that are read or written at a time.
const workers = 4

// marker is the first object of a repository.
type marker struct {
	FDDHDB  string `json:"fddhdb"`
	Version int    `json:"version"`
}

// readMarker checks that a store holds a repository that this version can read.
func readMarker(ctx context.Context, s Store) error {
	if s == nil {
		return errNoStore
	}
	b, err := read(ctx, s, markerName, 1<<12)
	if notThere(err) {
		return fmt.Errorf("%w: there is no %s in it", ErrNotRepository, markerName)
	}
	if err != nil {
		return err
	}
	var m marker
	if err := json.Unmarshal(b, &m); err != nil || m.FDDHDB != "backups" {
		return &markerError{}
	}
	return checkVersion("repository", m.Version)
}

// A markerError says that the marker of a repository is damaged, or belongs to something else.
// It is an ErrNotRepository and an ErrDamaged.
type markerError struct{}

func (*markerError) Error() string {
	return fmt.Sprintf(`%v: its %s is damaged: where backups are kept it holds {"fddhdb":"backups","version":%d}, and can be written again`,
		ErrDamaged, markerName, Version)
}

func (*markerError) Is(target error) bool { return target == ErrNotRepository || target == ErrDamaged }

// errSeen ends a list at its first object.
var errSeen = errors.New("there is an object")

// prepare makes a repository of an empty store.
func prepare(ctx context.Context, s Store) error {
	err := readMarker(ctx, s)
	if !errors.Is(err, ErrNotRepository) {
		return err
	}
	switch seen := s.List(ctx, "", func(o Object) error {
		if o.Name == markerName { // another process was first, or the marker is damaged
			return nil
		}
		return errSeen
	}); {
	case errors.Is(seen, errSeen):
		if again := readMarker(ctx, s); again == nil { // another process was first
			return nil
		}
		if errors.Is(err, ErrDamaged) {
			return err
		}
		return fmt.Errorf("%w: it holds something else", err)
	case seen != nil:
		return seen
	}
	return writeJSON(ctx, s, markerName, marker{"backups", Version})
}

func writeJSON(ctx context.Context, s Store, name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return putBytes(ctx, s, name, b)
}

// read returns an object of at most so many bytes.
func read(ctx context.Context, s Store, name string, most int64) (b []byte, err error) {
	r, err := s.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	b, err = io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(b)) > most {
		err = damaged("%s: more than %d bytes", name, most)
	}
	return b, err
}

// readManifest reads a manifest from a folder of the repository.
func readManifest(ctx context.Context, s Store, folder, id string) (*Manifest, error) {
	name := jsonName(folder, id)
	b, err := read(ctx, s, name, maxManifest)
	if err != nil {
		return nil, err
	}
	m, err := DecodeManifest(b)
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, name)
	}
	if m.ID != id {
		return nil, damaged("%s holds the manifest of %s", name, m.ID)
	}
	return m, nil
}

// ids lists the manifests or plans in a folder, and the time at which each was last
// put.
func ids(ctx context.Context, s Store, folder string) (map[string]time.Time, error) {
	found := map[string]time.Time{}
	err := s.List(ctx, folder, func(o Object) error {
		if id, ok := idOf(folder, o.Name); ok {
			found[id] = o.Modified
		}
		return nil
	})
	return found, err
}

// List returns the complete backups of a repository, oldest first, without their files.
// It leaves out running and interrupted ones. It reads their manifests, about 100 bytes
// for each piece of 16 MiB. A store without a repository gives ErrNotRepository, an
// unreadable manifest ErrDamaged or ErrVersion, and a repository with pieces of backups
// but no manifest ErrNoBackup.
func List(ctx context.Context, from Store) ([]*Manifest, error) {
	all, err := list(ctx, from)
	return all, annotate(err, "list backups")
}

func list(ctx context.Context, from Store) ([]*Manifest, error) {
	if err := readMarker(ctx, from); err != nil {
		return nil, err
	}
	found, err := ids(ctx, from, backups)
	if err != nil {
		return nil, err
	}
	var all []*Manifest
	for _, id := range sorted(found) {
		m, err := readManifest(ctx, from, backups, id)
		if notThere(err) {
			continue // pruned meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, m.brief())
	}
	if len(all) == 0 {
		return nil, manifestsLost(ctx, from)
	}
	return all, nil
}

// manifestsLost returns ErrNoBackup if a repository without a complete backup has a
// piece of a backup that is neither running nor interrupted.
func manifestsLost(ctx context.Context, from Store) error {
	begun, err := ids(ctx, from, running)
	if err != nil {
		return err
	}
	err = from.List(ctx, objects, func(o Object) error {
		if p, ok := pieceOf(o.Name); ok && begun[p.owner()].IsZero() {
			return ErrNoBackup
		}
		return nil
	})
	if !errors.Is(err, ErrNoBackup) {
		return err
	}
	if made, err := ids(ctx, from, backups); err != nil || len(made) > 0 { // completed just now
		return err
	}
	return fmt.Errorf("%w: it holds pieces of backups and no manifest in %s: none was completed, or the manifests are out of reach: bring them back", ErrNoBackup, backups)
}

func sorted[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
