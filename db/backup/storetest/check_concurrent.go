package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/fddhdb/fddhdb/db/backup"
)

// Methods do nothing once the context has ended, and return its error.
func checkCancelled(ctx context.Context, s backup.Store, n scale) error {
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	return leavesAsItWas(ctx, s, func(name string) error {
		for method, f := range map[string]func() error{
			"Put": func() error { return s.Put(cancelled, name, bytes.NewReader(nil), 0) },
			"a large Put": func() error {
				return s.Put(cancelled, name, &generated{size: n.parts},
					n.parts)
			},
			"Delete": func() error { return s.Delete(cancelled, name) },
			"List": func() error {
				return s.List(cancelled, "",
					func(backup.Object) error { return nil })
			},
			"List of none": func() error {
				return s.List(cancelled, "none/",
					func(backup.Object) error { return nil })
			},
			"Get": func() error {
				r, err := s.Get(cancelled, name)
				if err == nil {
					err = errors.Join(errors.New("an object"), r.Close())
				}
				return err
			},
		} {
			if err := f(); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("%s with a context that has ended: %v, want %v", method, err,
					context.Canceled)
			}
		}
		return nil
	})
}

// A context that ends halfway ends List, ends Put without a trace, and ends the reading
// of an object, unless all of it has been sent already.
func checkCancelledHalfway(ctx context.Context, s backup.Store, n scale) error {
	err := leavesAsItWas(ctx, s, func(name string) error {
		for _, at := range []int64{0, 1, n.parts / 2, n.parts - generatedPeriod} {
			cancelled, cancel := context.WithCancel(ctx)
			r := &generated{size: n.parts, onRead: func(now int64) error {
				if now >= at {
					cancel()
				}
				return nil
			}}
			err := s.Put(cancelled, name, r, n.parts)
			cancel()
			if !errors.Is(err, context.Canceled) {
				return fmt.Errorf("Put of %d bytes whose context ends at byte %d: %v, want %v", n.parts, at,
					err, context.Canceled)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range []string{"2", "3"} {
		if err := put(ctx, s, name, before); err != nil {
			return err
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	defer cancel()
	err = s.List(cancelled, "", func(backup.Object) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		return fmt.Errorf("List whose context ends after one of three objects: %v, want %v", err,
			context.Canceled)
	}
	return checkCancelledRead(ctx, s, n)
}

// A reader whose context ends returns stored bytes or the error, and nothing else.
func checkCancelledRead(ctx context.Context, s backup.Store, n scale) error {
	if err := s.Put(ctx, "large", &generated{size: n.parts}, n.parts); err != nil {
		return err
	}
	cancelled, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := s.Get(cancelled, "large")
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := io.CopyN(io.Discard, r, n.parts/4); err != nil {
		return fmt.Errorf("read a quarter of an object: %w", err)
	}
	cancel()
	rest, err := io.Copy(io.Discard, r)
	if err == nil && rest != n.parts-n.parts/4 || err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("a reader whose context ended gives %d of the last %d bytes, and error %v", rest,
			n.parts-n.parts/4, err)
	}
	return nil
}

// A reader that runs beside Puts finds one of the objects, whole.
func checkAtomic(ctx context.Context, s backup.Store, n scale) error {
	versions := [][]byte{noise(1, 300_000), noise(2, 100_000), noise(3, 1)}
	if err := put(ctx, s, "x/one", versions[0]); err != nil {
		return err
	}
	var writers atomic.Int32
	writers.Store(2)
	return together(5, func(worker int) error {
		if worker < 2 {
			defer writers.Add(-1)
			for i := range n.rounds {
				if err := put(ctx, s, "x/one", versions[(i+worker)%3]); err != nil {
					return err
				}
			}
			return nil
		}
		for last := false; !last; {
			last = writers.Load() == 0
			if worker == 2 {
				all, err := list(ctx, s, "")
				if err != nil {
					return err
				}
				if size := all["x/one"].Size; len(all) != 1 ||
					size != 300_000 && size != 100_000 && size != 1 {
					return fmt.Errorf("while an object is put, List tells of %v", all)
				}
				continue
			}
			got, err := get(ctx, s, "x/one")
			if err != nil {
				return fmt.Errorf("while the object is put: %w", err)
			}
			if !bytes.Equal(got, versions[0]) && !bytes.Equal(got, versions[1]) &&
				!bytes.Equal(got, versions[2]) {
				return fmt.Errorf("while the object is put, Get gives %s, which nobody has put", brief(got))
			}
		}
		return nil
	})
}

// A reader of an object that is replaced meanwhile reads on in the old one, or gets an
// error; never parts of both.
func checkReplacedWhileRead(ctx context.Context, s backup.Store, n scale) error {
	first, second := noise(1, int(n.parts/2)), noise(2, int(n.parts/2))
	if err := put(ctx, s, "one", first); err != nil {
		return err
	}
	r, err := s.Get(ctx, "one")
	if err != nil {
		return err
	}
	defer r.Close()
	got := make([]byte, 1000)
	if _, err := io.ReadFull(r, got); err != nil {
		return err
	}
	if err := put(ctx, s, "one", second); err != nil {
		return fmt.Errorf("while somebody reads it: %w", err)
	}
	rest, err := io.ReadAll(r)
	if got = append(got, rest...); !bytes.HasPrefix(first, got) && !bytes.HasPrefix(second, got) {
		return errors.New("who reads an object while it is replaced gets some bytes of either")
	}
	if err == nil && len(got) != len(first) {
		return fmt.Errorf("who reads an object while it is replaced gets %d of %d bytes and no error",
			len(got), len(first))
	}
	return holds(ctx, s, "one", second)
}

// Goroutines with objects of their own do not disturb each other.
func checkConcurrent(ctx context.Context, s backup.Store, n scale) error {
	err := together(8, func(worker int) error {
		name := fmt.Sprintf("w/%d/object", worker)
		for i := range n.rounds {
			want := noise(uint64(worker), 1000*(i%5))
			if err := put(ctx, s, name, want); err != nil {
				return err
			}
			if err := holds(ctx, s, name, want); err != nil {
				return err
			}
			if i%3 != 0 {
				continue
			}
			if err := s.Delete(ctx, name); err != nil {
				return err
			}
			if err := lacks(ctx, s, name); err != nil {
				return err
			}
		}
		// The last object of each goroutine stays.
		return put(ctx, s, name, nil)
	})
	if err != nil {
		return err
	}
	var want []string
	for worker := range 8 {
		want = append(want, fmt.Sprintf("w/%d/object", worker))
	}
	return lists(ctx, s, "", want...)
}
