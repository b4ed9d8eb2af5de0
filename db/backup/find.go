package backup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Choice selects a backup. The zero value selects the newest.
type Choice struct {
	// ID is an id, or the unique beginning of one. Before and Database are ignored
	// then.
	ID string

	// Before, if not zero, excludes backups that began after it.
	Before time.Time

	// Database is the UUID of a database. If it is empty, the repository must not hold
	// backups of several databases.
	Database string
}

// Find reads the manifest of a backup. Without an id it finds the newest backup of a
// whole database, or the newest of any kind if there is none of a whole one. No match
// gives ErrNotFound, and several matches ErrInvalid.
func Find(ctx context.Context, from Store, c Choice) (*Manifest, error) {
	m, err := find(ctx, from, c)
	return m, annotate(err, "find a backup")
}

func find(ctx context.Context, from Store, c Choice) (*Manifest, error) {
	if c.ID == "" {
		return newest(ctx, from, c)
	}
	if err := readMarker(ctx, from); err != nil {
		return nil, err
	}
	found, err := ids(ctx, from, backups)
	if err != nil {
		return nil, err
	}
	id, err := match(sorted(found), c.ID)
	if err != nil {
		return nil, err
	}
	m, err := readManifest(ctx, from, backups, id)
	if notThere(err) {
		err = fmt.Errorf("%w: %s has been pruned", ErrNotFound, id)
	}
	return m, err
}

// match returns the only id that begins with begin.
func match(all []string, begin string) (string, error) {
	first, _ := slices.BinarySearch(all, begin)
	found := all[first:]
	for i, id := range found {
		if !strings.HasPrefix(id, begin) {
			found = found[:i]
			break
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%w: none of the %d in the repository has an id that begins with %s", ErrNotFound, len(all), begin)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%w: %s is the beginning of %d ids, %s and %s among them: give more of it", ErrInvalid, begin, len(found), found[0], found[1])
}

func newest(ctx context.Context, from Store, c Choice) (*Manifest, error) {
	all, err := list(ctx, from)
	if err != nil {
		return nil, err
	}
	n := len(all)
	all = slices.DeleteFunc(all, func(m *Manifest) bool {
		return c.Database != "" && m.Database != c.Database || !c.Before.IsZero() && m.Time.After(c.Before)
	})
	if len(all) == 0 {
		return nil, c.noneOf(n)
	}
	best := all[len(all)-1]
	for _, m := range all {
		if m.Database != best.Database {
			return nil, fmt.Errorf("%w: the repository holds backups of several databases, %s and %s among them: say which",
				ErrInvalid, m.Database, best.Database)
		}
	}
	for _, m := range slices.Backward(all) {
		if m.Collection == "" && !m.IndexOnly {
			best = m
			break
		}
	}
	found, err := readManifest(ctx, from, backups, best.ID)
	if notThere(err) {
		err = fmt.Errorf("%w: %s has been pruned", ErrNotFound, best.ID)
	}
	return found, err
}

// noneOf returns an error that says that none of n backups matches.
func (c *Choice) noneOf(n int) error {
	if n == 0 {
		return fmt.Errorf("%w: the repository holds none", ErrNotFound)
	}
	var want []string
	if c.Database != "" {
		want = append(want, "is of the database "+c.Database)
	}
	if !c.Before.IsZero() {
		want = append(want, "began by "+c.Before.UTC().Format(time.RFC3339))
	}
	return fmt.Errorf("%w: none of the %d in the repository %s", ErrNotFound, n, strings.Join(want, " and "))
}
