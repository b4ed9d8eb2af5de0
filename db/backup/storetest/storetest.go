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
	"sync/atomic"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db/backup"
)

// Run tests the stores that open returns; each must be empty. open gets the t of a
// subtest. With -short Run leaves out large objects and makes fewer small ones.
func Run(t *testing.T, open func(t *testing.T) backup.Store) {
	for _, c := range []struct {
		name string
		run  func(k *kit)
	}{
		{"Bytes", bytesComeBack}, {"Names", namesDiffer}, {"Replace", putReplaces}, {"Missing", missing},
		{"Delete", deletesOne}, {"Prefixes", prefixes}, {"ErrorOfTheCallback", callbackFails},
		{"Modified", putMakesYounger}, {"Many", listsMany}, {"ListWhileOthersWrite", listsWhileWriting},
		{"Large", large}, {"WrongSize", wrongSize}, {"FailingReader", readerFails}, {"Cancelled", cancelled},
		{"CancelledHalfway", cancelledHalfway}, {"Atomic", atomicPut},
		{"ReplacedWhileRead", replacedWhileRead}, {"Concurrent", concurrent},
	} {
		t.Run(c.name, func(t *testing.T) {
			// A store that hangs must not keep other tests from running.
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			// More objects than a page of S3 lists, and objects that are uploaded in several parts.
			k := &kit{T: t, ctx: ctx, s: open(t), objects: 1100, large: 33<<20 + 3, parts: 17<<20 + 1,
				rounds: 15}
			if testing.Short() {
				k.objects, k.large, k.parts, k.rounds = 60, 1<<20+3, 1<<20+1, 10
			}
			c.run(k)
		})
	}
}

// A kit tests one promise of the interface on an empty store. Its methods may run in any goroutine, as none
// ends the test; what follows a failure may fail as well.
type kit struct {
	*testing.T
	ctx     context.Context
	s       backup.Store
	objects int   // in a store that has many
	large   int64 // bytes of an object that stores may cut into parts
	parts   int64 // likewise, of one that is put again and again
	rounds  int   // repetitions of concurrent work
}

// must fails the test if there is an error.
func (k *kit) must(err error, doing string, args ...any) {
	k.Helper()
	if err != nil {
		k.Errorf("%s: %v", fmt.Sprintf(doing, args...), err)
	}
}

// put stores data under a name.
func (k *kit) put(name string, data []byte) {
	k.Helper()
	k.must(k.s.Put(k.ctx, name, bytes.NewReader(data), int64(len(data))), "Put(%s) of %d bytes", name,
		len(data))
}

// delete deletes an object.
func (k *kit) delete(name string) {
	k.Helper()
	k.must(k.s.Delete(k.ctx, name), "Delete(%s)", name)
}

// get reads an object whole.
func (k *kit) get(name string) ([]byte, error) {
	r, err := k.s.Get(k.ctx, name)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}

// holds checks an object by Get and by List.
func (k *kit) holds(name string, want []byte) {
	k.Helper()
	got, err := k.get(name)
	if err != nil || !bytes.Equal(got, want) {
		k.Errorf("Get(%s) gives %s (error %v), want %s", name, brief(got), err, brief(want))
	}
	if o, ok := k.list(name)[name]; !ok || o.Size != int64(len(want)) {
		k.Errorf("List(%s) tells of %+v, want %d bytes", name, o, len(want))
	}
}

// lacks checks that there is no such object.
func (k *kit) lacks(name string) {
	k.Helper()
	if got, err := k.get(name); !errors.Is(err, fs.ErrNotExist) {
		k.Errorf("Get(%s), which is not there, gives %s and error %v, want one that wraps fs.ErrNotExist",
			name, brief(got), err)
	}
	if _, ok := k.list(name)[name]; ok {
		k.Errorf("List(%s) tells of what is not there", name)
	}
}

// list returns the objects that List finds, by name.
func (k *kit) list(prefix string) map[string]backup.Object {
	k.Helper()
	all := map[string]backup.Object{}
	k.must(k.s.List(k.ctx, prefix, func(o backup.Object) error {
		if _, twice := all[o.Name]; twice || !strings.HasPrefix(o.Name, prefix) {
			return fmt.Errorf("%s is listed twice, or has not the prefix", o.Name)
		}
		all[o.Name] = o
		return nil
	}), "List(%q)", prefix)
	return all
}

// lists checks that List finds these names and no others.
func (k *kit) lists(prefix string, want ...string) {
	k.Helper()
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(k.list(prefix))); !slices.Equal(got, want) {
		k.Errorf("List(%q) finds %d names, want %d: %.1000q, want %.1000q", prefix, len(got), len(want), got,
			want)
	}
}

// leavesAsItWas runs f, which must change nothing, on an existing object and on a missing one.
func (k *kit) leavesAsItWas(f func(name string)) {
	k.Helper()
	k.put("there", before)
	for _, name := range []string{"there", "new"} {
		f(name)
		k.holds("there", before)
		k.lists("", "there")
	}
}

var before = []byte("what was there before")

// together runs f in n goroutines and waits for all of them.
func together(n int, f func(worker int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

func brief(b []byte) string {
	if len(b) > 40 {
		return fmt.Sprintf("%d bytes, SHA-256 %.6x", len(b), sha256.Sum256(b))
	}
	return fmt.Sprintf("%q", b)
}

// noise returns n bytes that do not compress and differ by seed.
func noise(seed byte, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{0: seed}).Read(b) // never fails
	return b
}

// generated is a reader that makes an object as it is read, so that a large one needs no memory.
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

// Any bytes come back unchanged, also if the caller reuses its buffer. An object begins at the position of
// its reader, which need not be 0.
func bytesComeBack(k *kit) {
	for i, size := range []int{0, 1, 511, 4096, 65537, 1 << 20} {
		name, want := fmt.Sprintf("objects/%d", size), noise(byte(i), size)
		buffer := bytes.Clone(want)
		k.put(name, buffer)
		clear(buffer)
		k.holds(name, want)
		k.holds(name, want)
	}
	all := noise(1, 100_000)
	for _, at := range []int64{1, 60_000, 100_000} {
		r := bytes.NewReader(all)
		_, _ = r.Seek(at, io.SeekStart) // never fails
		k.must(k.s.Put(k.ctx, "part", r, r.Size()-at), "Put of a reader that stands at %d", at)
		k.holds("part", all[at:])
	}
}

// Every name that the interface allows names an object of its own.
func namesDiffer(k *kit) {
	list := []string{
		"z", "0", "9", "marker", "a-b", "a.b", "a..b", "-", "--", "1.2.3", "a/b-c", "a-/b", "b/0/c/1/d/2/e",
		"objects/ab/" + strings.Repeat("0123456789abcdef", 4) + ".zst",
		"backups/20260102t030405z-0123456789abcdef.json",
		strings.Repeat("n", 200), strings.Repeat("e/", 99) + "ee",
	}
	for i, name := range list {
		k.put(name, noise(byte(i), 20+i))
	}
	for i, name := range list {
		k.holds(name, noise(byte(i), 20+i))
	}
	k.lists("", list...)
}

// Put replaces an object by a longer or shorter one.
func putReplaces(k *kit) {
	for i, size := range []int{1000, 200_000, 10, 0, 300} {
		k.put("backups/one", noise(byte(i), size))
		k.holds("backups/one", noise(byte(i), size))
	}
	k.lists("", "backups/one")
}

// A missing object gives fs.ErrNotExist and is deleted without an error, also if objects have names below it.
func missing(k *kit) {
	for i := range 2 {
		for _, name := range []string{"objects", "objects/a", "objects/ab", "objects/ab/11", "other/x"} {
			k.lacks(name)
			k.delete(name)
		}
		if i == 0 {
			k.put("objects/ab/1", []byte("one"))
		}
	}
	k.holds("objects/ab/1", []byte("one"))
}

// Delete deletes one object. The name can be used again, also once the last object of a folder is gone.
func deletesOne(k *kit) {
	all := []string{"x/1", "x/2", "x/12"}
	for range 2 {
		for _, name := range all {
			k.put(name, []byte(name))
		}
		k.delete("x/1")
		k.lacks("x/1")
		k.lists("", "x/2", "x/12")
		k.put("x/1", []byte("again"))
		k.holds("x/1", []byte("again"))
		for _, name := range all {
			k.delete(name)
		}
		k.lists("")
	}
}

// A prefix is a prefix of the name, not a folder.
func prefixes(k *kit) {
	all := []string{"backups/1.json", "backups/12.json", "backups-old", "objects/ab/1", "objects/ab/2",
		"objects/abc", "objects/b"}
	k.lists("")
	for _, name := range all {
		k.put(name, []byte(name))
	}
	for _, prefix := range []string{
		"", "b", "backups", "backups/", "backups/1", "backups/1.", "backups/1.json", "backups/1.json/",
		"backups-", "o", "objects/", "objects/a", "objects/ab", "objects/ab/", "objects/ab/1", "objects/abc",
		"objects/c", "x", "x/y",
	} {
		k.lists(prefix, slices.DeleteFunc(slices.Clone(all),
			func(name string) bool { return !strings.HasPrefix(name, prefix) })...)
	}
}

// An error of the callback ends List, which returns it.
func callbackFails(k *kit) {
	for i := range 5 {
		k.put(fmt.Sprintf("x/%d", i), nil)
	}
	enough := errors.New("storetest: enough")
	for stop := 1; stop <= 5; stop++ {
		calls := 0
		err := k.s.List(k.ctx, "", func(backup.Object) error {
			if calls++; calls == stop {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) || calls != stop {
			k.Errorf("List whose callback fails at object %d calls it %d times and returns %v", stop, calls,
				err)
		}
	}
}

// Modified is the time of the last Put: putting an object again makes it younger.
func putMakesYounger(k *kit) {
	modified := func() time.Time { return k.list("lease")["lease"].Modified }
	k.put("lease", []byte("1"))
	first := modified()
	if again := modified(); first.IsZero() || !again.Equal(first) {
		k.Errorf("an object that nobody has put again was modified at %v and at %v", first, again)
	}
	for !k.Failed() { // the clock of the store may show only seconds
		k.put("lease", []byte("1"))
		switch now := modified(); now.Compare(first) {
		case +1:
			return
		case -1:
			k.Errorf("an object that was modified at %v is put again, and is from %v then", first, now)
		}
	}
}

// putMany puts objects whose names sort differently as paths of files and as strings, and returns the names.
func (k *kit) putMany() []string {
	list := make([]string, k.objects)
	for i := range list {
		list[i] = fmt.Sprintf("o/%c%s%03d", "ab"[i%2], []string{"/", "-", ".", "0"}[i/2%4], i/8)
	}
	together(8, func(worker int) {
		for i := worker; i < len(list); i += 8 {
			k.put(list[i], []byte(list[i]))
		}
	})
	return list
}

// List finds all of thousands, each once, with its size.
func listsMany(k *kit) {
	k.lists("", k.putMany()...)
	for _, o := range k.list("") {
		if o.Size != int64(len(o.Name)) {
			k.Errorf("List tells that %s has %d bytes, want %d", o.Name, o.Size, len(o.Name))
		}
	}
}

// List finds objects that are there all the time, whatever others put and delete meanwhile.
func listsWhileWriting(k *kit) {
	var goes, stays []string
	for i, name := range k.putMany() {
		if i%3 == 0 {
			goes = append(goes, name)
		} else {
			stays = append(stays, name)
		}
	}
	seen := map[string]bool{}
	k.must(k.s.List(k.ctx, "", func(o backup.Object) error {
		seen[o.Name] = true
		if len(goes) > 0 {
			name := goes[0]
			goes = goes[1:]
			k.delete(name)
			k.put("z"+name, nil)
		}
		return nil
	}), "List whose callback deletes and puts")
	for _, name := range stays {
		if !seen[name] {
			k.Errorf("List does not find %s, which was there all the time", name)
		}
	}
}

// A large object is neither cut nor changed.
func large(k *kit) {
	want, got := sha256.New(), sha256.New()
	_, err := io.Copy(want, &generated{size: k.large})
	k.must(err, "making an object")
	k.must(k.s.Put(k.ctx, "large", &generated{size: k.large}, k.large), "Put of %d bytes", k.large)
	r, err := k.s.Get(k.ctx, "large")
	if err != nil {
		k.Fatalf("Get of %d bytes: %v", k.large, err)
	}
	defer r.Close()
	size, err := io.Copy(got, r)
	if err != nil || size != k.large || !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
		k.Errorf("an object of %d bytes, SHA-256 %.6x, came back as %d bytes, SHA-256 %.6x (error %v)",
			k.large, want.Sum(nil), size, got.Sum(nil), err)
	}
	if all := k.list(""); len(all) != 1 || all["large"].Size != k.large {
		k.Errorf("List tells of %v, want one object of %d bytes", all, k.large)
	}
}

// A Put whose reader has another number of bytes fails and changes nothing.
func wrongSize(k *kit) {
	k.leavesAsItWas(func(name string) {
		for _, wrong := range []int64{-1000, -1, 1, 1000, k.parts} {
			if k.s.Put(k.ctx, name, bytes.NewReader(noise(2, 5000)), 5000+wrong) == nil {
				k.Errorf("Put(%s) of 5000 bytes that are said to be %d succeeds", name, 5000+wrong)
			}
		}
	})
}

// A Put whose reader fails changes nothing. A store need not read beyond the last byte.
func readerFails(k *kit) {
	k.leavesAsItWas(func(name string) {
		for _, fail := range []int64{0, 1, k.parts / 2} {
			err := k.s.Put(k.ctx, name, &generated{size: k.parts, onRead: func(at int64) error {
				if at >= fail {
					return errors.New("storetest: the reader is broken")
				}
				return nil
			}}, k.parts)
			if err == nil {
				k.Errorf("Put(%s) succeeds although its reader fails after %d of %d bytes", name, fail,
					k.parts)
			}
		}
	})
}

// Methods do nothing once the context has ended, and return its error.
func cancelled(k *kit) {
	ended, cancel := context.WithCancel(k.ctx)
	cancel()
	nothing := func(backup.Object) error { return nil }
	k.leavesAsItWas(func(name string) {
		_, err := k.s.Get(ended, name)
		for method, err := range map[string]error{
			"Get": err, "Delete": k.s.Delete(ended, name), "List": k.s.List(ended, "", nothing),
			"List of none": k.s.List(ended, "none/", nothing),
			"Put":          k.s.Put(ended, name, bytes.NewReader(nil), 0),
			"a large Put":  k.s.Put(ended, name, &generated{size: k.parts}, k.parts),
		} {
			if !errors.Is(err, context.Canceled) {
				k.Errorf("%s with a context that has ended: %v, want %v", method, err, context.Canceled)
			}
		}
	})
}

// A context that ends halfway ends List, and ends Put without a trace. A reader whose context ends returns
// stored bytes or the error, and nothing else.
func cancelledHalfway(k *kit) {
	k.leavesAsItWas(func(name string) {
		for _, at := range []int64{0, 1, k.parts / 2, k.parts - generatedPeriod} {
			ctx, cancel := context.WithCancel(k.ctx)
			err := k.s.Put(ctx, name, &generated{size: k.parts, onRead: func(now int64) error {
				if now >= at {
					cancel()
				}
				return nil
			}}, k.parts)
			cancel()
			if !errors.Is(err, context.Canceled) {
				k.Errorf("Put of %d bytes whose context ends at byte %d: %v, want %v", k.parts, at, err,
					context.Canceled)
			}
		}
	})
	k.put("2", before)
	k.put("3", before)
	ctx, cancel := context.WithCancel(k.ctx)
	err := k.s.List(ctx, "", func(backup.Object) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		k.Errorf("List whose context ends after one of three objects: %v, want %v", err, context.Canceled)
	}
	k.must(k.s.Put(k.ctx, "large", &generated{size: k.parts}, k.parts), "Put of %d bytes", k.parts)
	ctx, cancel = context.WithCancel(k.ctx)
	defer cancel()
	r, err := k.s.Get(ctx, "large")
	if err != nil {
		k.Fatal(err)
	}
	defer r.Close()
	_, err = io.CopyN(io.Discard, r, k.parts/4)
	k.must(err, "reading a quarter of an object")
	cancel()
	rest, err := io.Copy(io.Discard, r)
	if err == nil && rest != k.parts-k.parts/4 || err != nil && !errors.Is(err, context.Canceled) {
		k.Errorf("a reader whose context ended gives %d of the last %d bytes, and error %v", rest,
			k.parts-k.parts/4, err)
	}
}

// A reader that runs beside Puts finds one of the objects, whole.
func atomicPut(k *kit) {
	versions := [][]byte{noise(1, 300_000), noise(2, 100_000), noise(3, 1)}
	k.put("x/one", versions[0])
	var writers atomic.Int32
	writers.Store(2)
	together(5, func(worker int) {
		if worker < 2 {
			defer writers.Add(-1)
			for i := range k.rounds {
				k.put("x/one", versions[(i+worker)%3])
			}
			return
		}
		for last := false; !last && !k.Failed(); {
			last = writers.Load() == 0
			if worker == 2 {
				all := k.list("")
				if n := all["x/one"].Size; len(all) != 1 || n != 300_000 && n != 100_000 && n != 1 {
					k.Errorf("while an object is put, List tells of %v", all)
				}
				continue
			}
			got, err := k.get("x/one")
			whole := slices.ContainsFunc(versions, func(v []byte) bool { return bytes.Equal(v, got) })
			if err != nil || !whole {
				k.Errorf("while the object is put, Get gives %s, which nobody has put (error %v)", brief(got),
					err)
			}
		}
	})
}

// A reader of an object that is replaced meanwhile reads on in the old one, or gets an error; never parts of
// both.
func replacedWhileRead(k *kit) {
	first, second := noise(1, int(k.parts/2)), noise(2, int(k.parts/2))
	k.put("one", first)
	r, err := k.s.Get(k.ctx, "one")
	if err != nil {
		k.Fatal(err)
	}
	defer r.Close()
	got := make([]byte, 1000)
	_, err = io.ReadFull(r, got)
	k.must(err, "reading 1000 bytes")
	k.put("one", second)
	rest, err := io.ReadAll(r)
	if got = append(got, rest...); !bytes.HasPrefix(first, got) && !bytes.HasPrefix(second, got) ||
		err == nil && len(got) != len(first) {
		k.Errorf("a reader of an object that is replaced gets %s and error %v: neither of the two objects",
			brief(got), err)
	}
	k.holds("one", second)
}

// Goroutines with objects of their own do not disturb each other.
func concurrent(k *kit) {
	want := make([]string, 8)
	together(len(want), func(worker int) {
		name := fmt.Sprintf("w/%d/object", worker)
		want[worker] = name
		for i := range k.rounds {
			data := noise(byte(worker), 1000*(i%5))
			k.put(name, data)
			k.holds(name, data)
			if i%3 == 0 {
				k.delete(name)
				k.lacks(name)
			}
		}
		k.put(name, nil) // the last object of each goroutine stays
	})
	k.lists("", want...)
}
