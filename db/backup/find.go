package backup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Choice says which backup is meant. The zero value means the newest.
type Choice struct {
	// ID is an id, or the beginning of one and of no other. Before and Database are not
	// looked at then.
	ID string

	// Before, if not zero, leaves out backups that began after it.
	Before time.Time

	// Database is the UUID of a database. Where it is empty, the repository must not
	// hold backups of several.
	Database string
}

// Find reads the manifest of a backup. Where the choice names none by its id, it is the
// newest of a whole database, and of what there is where there is none of a whole one.
// None gives ErrNotFound, several that may be meant ErrInvalid.
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

// match returns the only one of all ids that begins with some characters.
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

// noneOf says that none of n backups is one that is meant.
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
