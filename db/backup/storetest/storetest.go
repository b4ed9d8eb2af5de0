package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db/backup"
)

// Run tests the stores that open returns; each must be empty. open gets the t of a
// subtest. With -short Run leaves out large objects and makes fewer small ones.
func Run(t *testing.T, open func(t *testing.T) backup.Store) {
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			// A store that hangs must not keep other tests from running.
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			if err := c.run(ctx, open(t), scaleOf(testing.Short())); err != nil {
				t.Error(err)
			}
		})
	}
}

// A check tests one promise of the interface on an empty store.
type check struct {
	name string
	run  func(ctx context.Context, s backup.Store, n scale) error
}

func checks() []check {
	return []check{
		{"Bytes", checkBytes},
		{"FromWhereTheReaderStands", checkPosition},
		{"Names", checkNames},
		{"Replace", checkReplace},
		{"Missing", checkMissing},
		{"Delete", checkDelete},
		{"Prefixes", checkPrefixes},
		{"ErrorOfTheCallback", checkCallback},
		{"Modified", checkModified},
		{"Many", checkMany},
		{"ListWhileOthersWrite", checkListWhileWriting},
		{"Large", checkLarge},
		{"WrongSize", checkWrongSize},
		{"FailingReader", checkFailingReader},
		{"Cancelled", checkCancelled},
		{"CancelledHalfway", checkCancelledHalfway},
		{"Atomic", checkAtomic},
		{"ReplacedWhileRead", checkReplacedWhileRead},
		{"Concurrent", checkConcurrent},
	}
}

// scale is the amount of work of a check.
type scale struct {
	objects int   // in a store that has many
	large   int64 // bytes of an object that stores may cut into parts
	parts   int64 // bytes of one that stores may cut into parts
	rounds  int   // repetitions of concurrent work
}

// scaleOf has more objects than a page of S3 lists, and objects that are uploaded in
// several parts.
func scaleOf(short bool) scale {
	if short {
		return scale{objects: 60, large: 1<<20 + 3, parts: 1<<20 + 1, rounds: 10}
	}
	return scale{objects: 1100, large: 33<<20 + 3, parts: 17<<20 + 1, rounds: 15}
}

// put stores data under a name.
func put(ctx context.Context, s backup.Store, name string, data []byte) error {
	if err := s.Put(ctx, name, bytes.NewReader(data), int64(len(data))); err != nil {
		return fmt.Errorf("Put(%s) of %d bytes: %w", name, len(data), err)
	}
	return nil
}

// get reads an object whole.
func get(ctx context.Context, s backup.Store, name string) ([]byte, error) {
	r, err := s.Get(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("Get(%s): %w", name, err)
	}
	b, err := io.ReadAll(r)
	if closed := r.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return b, nil
}

// holds checks an object by Get and by List.
func holds(ctx context.Context, s backup.Store, name string, want []byte) error {
	got, err := get(ctx, s, name)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("Get(%s) gives %s, want %s", name, brief(got), brief(want))
	}
	all, err := list(ctx, s, name)
	if err != nil {
		return err
	}
	if o, ok := all[name]; !ok || o.Size != int64(len(want)) {
		return fmt.Errorf("List(%s) tells of %+v, want %d bytes", name, all, len(want))
	}
	return nil
}

// lacks checks that there is no such object.
func lacks(ctx context.Context, s backup.Store, name string) error {
	if got, err := get(ctx, s, name); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("Get(%s), which is not there, gives %s and error %v, want one that wraps fs.ErrNotExist", name, brief(got), err)
	}
	all, err := list(ctx, s, name)
	if err != nil {
		return err
	}
	if _, ok := all[name]; ok {
		return fmt.Errorf("List(%s) tells of what is not there", name)
	}
	return nil
}

// list returns the objects that List finds, by name.
func list(ctx context.Context, s backup.Store, prefix string) (map[string]backup.Object, error) {
	all := map[string]backup.Object{}
	err := s.List(ctx, prefix, func(o backup.Object) error {
		if _, twice := all[o.Name]; twice {
			return fmt.Errorf("List(%q) tells of %s twice", prefix, o.Name)
		}
		if !strings.HasPrefix(o.Name, prefix) {
			return fmt.Errorf("List(%q) tells of %s", prefix, o.Name)
		}
		all[o.Name] = o
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("List(%q): %w", prefix, err)
	}
	return all, nil
}

// lists checks that List finds these names and no others.
func lists(ctx context.Context, s backup.Store, prefix string, want ...string) error {
	all, err := list(ctx, s, prefix)
	if err != nil {
		return err
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
		return fmt.Errorf("List(%q) finds %s, want %s", prefix, names(got), names(want))
	}
	return nil
}

func names(list []string) string {
	if len(list) > 12 {
		return fmt.Sprintf("%d names, %q to %q", len(list), list[0], list[len(list)-1])
	}
	return fmt.Sprintf("%q", list)
}

func brief(b []byte) string {
	if len(b) > 40 {
		return fmt.Sprintf("%d bytes, SHA-256 %.6x", len(b), sha256.Sum256(b))
	}
	return fmt.Sprintf("%q", b)
}

// together runs f in n goroutines and waits for all of them.
func together(n int, f func(worker int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// noise returns n bytes that do not compress and differ by seed.
func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{0: byte(seed), 1: byte(seed >> 8), 2: byte(seed >> 16)})
	_, _ = r.Read(b) // never fails
	return b
}

// generated is a reader that makes an object as it is read, so that a large one needs
// no memory.
type generated struct {
	at, size int64
	onRead   func(at int64) error
}

// generatedPeriod is prime, so that no two parts of an upload are equal.
const generatedPeriod = 65521

var generatedBytes = bytes.Repeat(noise(7, generatedPeriod), 2)

func (g *generated) Read(p []byte) (int, error) {
	if g.onRead != nil {
		if err := g.onRead(g.at); err != nil {
			return 0, err
		}
	}
	if g.at >= g.size {
		return 0, io.EOF
	}
	begin := g.at % generatedPeriod
	n := copy(p, generatedBytes[begin:begin+min(g.size-g.at, generatedPeriod)])
	g.at += int64(n)
	return n, nil
}

func (g *generated) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += g.at
	case io.SeekEnd:
		offset += g.size
	}
	if offset < 0 {
		return 0, errors.New("storetest: seek to before the beginning")
	}
	g.at = offset
	return offset, nil
}
