package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/fddhdb/fddhdb/db/backup"
)

// Any bytes come back unchanged, also if the caller reuses its buffer.
func checkBytes(ctx context.Context, s backup.Store, _ scale) error {
	for i, size := range []int{0, 1, 511, 4096, 65537, 1 << 20} {
		name := fmt.Sprintf("objects/%d", size)
		want := noise(uint64(i), size)
		buffer := bytes.Clone(want)
		if err := put(ctx, s, name, buffer); err != nil {
			return err
		}
		clear(buffer)
		for range 2 {
			if err := holds(ctx, s, name, want); err != nil {
				return err
			}
		}
	}
	return nil
}

// An object begins at the position of its reader, which need not be 0.
func checkPosition(ctx context.Context, s backup.Store, _ scale) error {
	all := noise(1, 100_000)
	for _, at := range []int64{1, 60_000, 100_000} {
		r := bytes.NewReader(all)
		if _, err := r.Seek(at, io.SeekStart); err != nil {
			return err
		}
		if err := s.Put(ctx, "part", r, r.Size()-at); err != nil {
			return fmt.Errorf("Put of a reader that stands at %d: %w", at, err)
		}
		if err := holds(ctx, s, "part", all[at:]); err != nil {
			return err
		}
	}
	return nil
}

// Every name that the interface allows names an object of its own.
func checkNames(ctx context.Context, s backup.Store, _ scale) error {
	list := []string{
		"z", "0", "9", "marker", "a-b", "a.b", "a..b", "-", "--", "1.2.3", "a/b-c", "a-/b", "b/0/c/1/d/2/e",
		"objects/ab/" + strings.Repeat("0123456789abcdef", 4) + ".zst",
		"backups/20260102t030405z-0123456789abcdef.json",
		strings.Repeat("n", 200), strings.Repeat("e/", 99) + "ee",
	}
	for i, name := range list {
		if err := put(ctx, s, name, noise(uint64(i), 20+i)); err != nil {
			return err
		}
	}
	for i, name := range list {
		if err := holds(ctx, s, name, noise(uint64(i), 20+i)); err != nil {
			return err
		}
	}
	return lists(ctx, s, "", list...)
}

// Put replaces an object by a longer or shorter one.
func checkReplace(ctx context.Context, s backup.Store, _ scale) error {
	for i, size := range []int{1000, 200_000, 10, 0, 300} {
		want := noise(uint64(i), size)
		if err := put(ctx, s, "backups/one", want); err != nil {
			return err
		}
		if err := holds(ctx, s, "backups/one", want); err != nil {
			return err
		}
	}
	return lists(ctx, s, "", "backups/one")
}

// A missing object gives fs.ErrNotExist and is deleted without an error, also if
// objects have names below it.
func checkMissing(ctx context.Context, s backup.Store, _ scale) error {
	missing := func() error {
		for _, name := range []string{"objects", "objects/a", "objects/ab", "objects/ab/11", "other/x"} {
			if err := lacks(ctx, s, name); err != nil {
				return err
			}
			if err := s.Delete(ctx, name); err != nil {
				return fmt.Errorf("Delete(%s), which is not there: %w", name, err)
			}
		}
		return nil
	}
	if err := missing(); err != nil {
		return err
	}
	if err := put(ctx, s, "objects/ab/1", []byte("one")); err != nil {
		return err
	}
	if err := missing(); err != nil {
		return err
	}
	return holds(ctx, s, "objects/ab/1", []byte("one"))
}

// Delete deletes one object. The name can be used again.
func checkDelete(ctx context.Context, s backup.Store, _ scale) error {
	for _, name := range []string{"x/1", "x/2", "x/12"} {
		if err := put(ctx, s, name, []byte(name)); err != nil {
			return err
		}
	}
	for range 2 {
		if err := s.Delete(ctx, "x/1"); err != nil {
			return fmt.Errorf("Delete(x/1): %w", err)
		}
		if err := lacks(ctx, s, "x/1"); err != nil {
			return err
		}
		if err := lists(ctx, s, "", "x/2", "x/12"); err != nil {
			return err
		}
		if err := put(ctx, s, "x/1", []byte("again")); err != nil {
			return err
		}
		if err := holds(ctx, s, "x/1", []byte("again")); err != nil {
			return err
		}
	}
	// Delete the last objects of a folder, if the store has folders.
	for _, name := range []string{"x/1", "x/2", "x/12"} {
		if err := s.Delete(ctx, name); err != nil {
			return fmt.Errorf("Delete(%s): %w", name, err)
		}
	}
	if err := lists(ctx, s, ""); err != nil {
		return err
	}
	return put(ctx, s, "x/3", nil)
}

// A large object is neither cut nor changed.
func checkLarge(ctx context.Context, s backup.Store, n scale) error {
	want := sha256.New()
	if _, err := io.Copy(want, &generated{size: n.large}); err != nil {
		return err
	}
	if err := s.Put(ctx, "large", &generated{size: n.large}, n.large); err != nil {
		return fmt.Errorf("Put of %d bytes: %w", n.large, err)
	}
	r, err := s.Get(ctx, "large")
	if err != nil {
		return fmt.Errorf("Get of %d bytes: %w", n.large, err)
	}
	defer r.Close()
	got := sha256.New()
	size, err := io.Copy(got, r)
	if err != nil {
		return fmt.Errorf("read the large object: after %d bytes: %w", size, err)
	}
	if size != n.large || !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
		return fmt.Errorf("an object of %d bytes, SHA-256 %.6x, came back as %d bytes, SHA-256 %.6x", n.large,
			want.Sum(nil), size, got.Sum(nil))
	}
	all, err := list(ctx, s, "")
	if err == nil && (len(all) != 1 || all["large"].Size != n.large) {
		err = fmt.Errorf("List tells of %v, want one object of %d bytes", all, n.large)
	}
	return err
}

// A Put whose reader has another number of bytes fails and changes nothing.
func checkWrongSize(ctx context.Context, s backup.Store, n scale) error {
	return leavesAsItWas(ctx, s, func(name string) error {
		for _, wrong := range []int64{-1000, -1, 1, 1000, n.parts} {
			r := bytes.NewReader(noise(2, 5000))
			if err := s.Put(ctx, name, r, 5000+wrong); err == nil {
				return fmt.Errorf("Put(%s) of 5000 bytes that are said to be %d succeeds", name, 5000+wrong)
			}
		}
		return nil
	})
}

// A Put whose reader fails changes nothing.
func checkFailingReader(ctx context.Context, s backup.Store, n scale) error {
	broken := errors.New("storetest: the reader is broken")
	return leavesAsItWas(ctx, s, func(name string) error {
		for _, fail := range []int64{0, 1, n.parts / 2, n.parts} {
			r := &generated{size: n.parts, onRead: func(at int64) error {
				if at >= fail {
					return broken
				}
				return nil
			}}
			err := s.Put(ctx, name, r, n.parts)
			if fail < n.parts && err == nil {
				return fmt.Errorf("Put(%s) succeeds although its reader fails after %d of %d bytes", name,
					fail, n.parts)
			}
			// A store need not read beyond the last byte.
			if err == nil {
				if err := s.Delete(ctx, name); err != nil {
					return err
				}
				if name == "there" {
					return put(ctx, s, name, before)
				}
			}
		}
		return nil
	})
}

var before = []byte("what was there before")

// leavesAsItWas runs f, which must change nothing, on an existing object and on a
// missing one.
func leavesAsItWas(ctx context.Context, s backup.Store, f func(name string) error) error {
	if err := put(ctx, s, "there", before); err != nil {
		return err
	}
	for _, name := range []string{"there", "new"} {
		if err := f(name); err != nil {
			return err
		}
		if err := holds(ctx, s, "there", before); err != nil {
			return err
		}
		if err := lists(ctx, s, "", "there"); err != nil {
			return err
		}
	}
	return nil
}
