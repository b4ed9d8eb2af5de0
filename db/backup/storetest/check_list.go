package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db/backup"
)

// A prefix is a prefix of the name, not a folder.
func checkPrefixes(ctx context.Context, s backup.Store, _ scale) error {
	all := []string{"backups/1.json", "backups/12.json", "backups-old", "objects/ab/1", "objects/ab/2",
		"objects/abc", "objects/b"}
	if err := lists(ctx, s, ""); err != nil {
		return err
	}
	for _, name := range all {
		if err := put(ctx, s, name, []byte(name)); err != nil {
			return err
		}
	}
	for _, prefix := range []string{
		"", "b", "backups", "backups/", "backups/1", "backups/1.", "backups/1.json", "backups/1.json/",
		"backups-",
		"o", "objects/", "objects/a", "objects/ab", "objects/ab/", "objects/ab/1", "objects/abc", "objects/c",
		"x", "x/y",
	} {
		var want []string
		for _, name := range all {
			if strings.HasPrefix(name, prefix) {
				want = append(want, name)
			}
		}
		if err := lists(ctx, s, prefix, want...); err != nil {
			return err
		}
	}
	return nil
}

// An error of the callback ends List, which returns it.
func checkCallback(ctx context.Context, s backup.Store, _ scale) error {
	for i := range 5 {
		if err := put(ctx, s, fmt.Sprintf("x/%d", i), nil); err != nil {
			return err
		}
	}
	enough := errors.New("storetest: enough")
	for stop := 1; stop <= 5; stop++ {
		calls := 0
		err := s.List(ctx, "", func(backup.Object) error {
			if calls++; calls == stop {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) || calls != stop {
			return fmt.Errorf("List whose callback fails at object %d calls it %d times and returns %v", stop,
				calls, err)
		}
	}
	return nil
}

// Modified is the time of the last Put: putting an object again makes it younger.
func checkModified(ctx context.Context, s backup.Store, _ scale) error {
	modified := func() (backup.Object, error) {
		all, err := list(ctx, s, "lease")
		return all["lease"], err
	}
	if err := put(ctx, s, "lease", []byte("1")); err != nil {
		return err
	}
	first, err := modified()
	if err != nil {
		return err
	}
	if first.Modified.IsZero() {
		return errors.New("List tells no time of modification")
	}
	if again, err := modified(); err != nil || !again.Modified.Equal(first.Modified) {
		return fmt.Errorf("an object that nobody has put again was modified at %v and at %v (error %v)",
			first.Modified, again.Modified, err)
	}
	// The clock of the store may show only seconds.
	for {
		if err := put(ctx, s, "lease", []byte("1")); err != nil {
			return fmt.Errorf("until an object that is put again is younger than %v: %w", first.Modified, err)
		}
		now, err := modified()
		if err != nil {
			return fmt.Errorf("until an object that is put again is younger than %v: %w", first.Modified, err)
		}
		switch now.Modified.Compare(first.Modified) {
		case +1:
			return nil
		case -1:
			return fmt.Errorf("an object that was modified at %v is put again, and is from %v then",
				first.Modified, now.Modified)
		}
	}
}

// manyNames returns names that sort differently as paths of files and as strings.
func manyNames(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("o/%c%s%03d", "ab"[i%2], []string{"/", "-", ".", "0"}[i/2%4], i/8)
	}
	return list
}

func putMany(ctx context.Context, s backup.Store, list []string) error {
	return together(8, func(worker int) error {
		for i := worker; i < len(list); i += 8 {
			if err := put(ctx, s, list[i], []byte(list[i])); err != nil {
				return err
			}
		}
		return nil
	})
}

// List finds all of thousands, each once, with its size.
func checkMany(ctx context.Context, s backup.Store, n scale) error {
	want := manyNames(n.objects)
	if err := putMany(ctx, s, want); err != nil {
		return err
	}
	all, err := list(ctx, s, "")
	if err != nil {
		return err
	}
	for _, o := range all {
		if o.Size != int64(len(o.Name)) {
			return fmt.Errorf("List tells that %s has %d bytes, want %d", o.Name, o.Size, len(o.Name))
		}
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
		return fmt.Errorf("List finds %d of %d objects: %s", len(got), len(want), names(got))
	}
	return nil
}

// List finds objects that are there all the time, whatever others put and delete
// meanwhile.
func checkListWhileWriting(ctx context.Context, s backup.Store, n scale) error {
	all := manyNames(n.objects)
	if err := putMany(ctx, s, all); err != nil {
		return err
	}
	var goes, stays []string
	for i, name := range all {
		if i%3 == 0 {
			goes = append(goes, name)
		} else {
			stays = append(stays, name)
		}
	}
	seen := map[string]bool{}
	err := s.List(ctx, "", func(o backup.Object) error {
		seen[o.Name] = true
		if len(goes) == 0 {
			return nil
		}
		name := goes[0]
		goes = goes[1:]
		if err := s.Delete(ctx, name); err != nil {
			return err
		}
		return put(ctx, s, "z"+name, nil)
	})
	if err != nil {
		return fmt.Errorf("List whose callback deletes and puts: %w", err)
	}
	for _, name := range stays {
		if !seen[name] {
			return fmt.Errorf("List does not find %s, which was there all the time", name)
		}
	}
	return nil
}
