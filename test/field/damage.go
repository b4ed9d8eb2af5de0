//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A place is a part of a file to flip a bit in.
type place struct {
	stock  string // the name of the database; "repo" for backups
	file   string // the path of the file in it
	offset int64
	length int64  // 0: the file is empty, and gets a byte
	what   string // what is stored there
	rank   int    // places of rank 0 are tried first: one for each kind of record or file
}

// damage flips bits in every kind of stored value, in files of every kind, and lets
// verbs work with that. Each verb has to end in time, with an error or with its right
// answer.
func damage(ctx context.Context, t *trial) error {
	places, kinds, err := t.f.stocks.places()
	if err != nil {
		return err
	}
	t.f.tell("damage: %d blocks and parts of files, with records of the kinds %s", len(places),
		strings.Join(kinds, " "))
	r := t.rand(-2)
	r.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.rank, b.rank) })
	per := 1
	if t.f.long {
		per = 8
	}
	t.each(ctx, per*len(places), func(ctx context.Context, a *attempt) error {
		p := places[a.number%len(places)]
		return a.damaged(ctx, p, t.f.stocks.reader(a, p, a.number/len(places)))
	})
	return nil
}

// reader chooses a verb that reads a place: in the first round one that reads
// everything, then any.
func (s *stocks) reader(a *attempt, p place, round int) verb {
	all := some(func(v *verb) bool {
		if v.serves {
			return false
		}
		if p.stock == "repo" {
			return v.repo && v.database() == "main" // main's backups are in repo
		}
		return v.database() == p.stock && (v.writes || v.opens)
	})
	if round%2 == 0 {
		reads := slices.DeleteFunc(slices.Clone(all), func(v verb) bool {
			return !slices.Contains([]string{"verify", "repair", "backup", "compact", "update", "restore",
				"reindex"}, v.name())
		})
		if len(reads) > 0 {
			all = reads
		}
	}
	return all[a.r.IntN(len(all))]
}

// damaged flips a bit at a place and lets a verb work with that.
func (a *attempt) damaged(ctx context.Context, p place, v verb) error {
	s := a.t.f.stocks
	b, err := s.baseline(ctx, a, v)
	if err != nil {
		return err
	}
	at, bit := p.offset, a.r.IntN(8)
	if p.length > 0 {
		at += a.r.Int64N(p.length)
	}
	err = a.begin(func(dir string) error {
		if err := s.supply(dir, &v); err != nil {
			return err
		}
		root := "x.db"
		if p.stock == "repo" {
			root = "repo"
		}
		return flip(filepath.Join(dir, root, p.file), at, bit)
	})
	if err != nil {
		return err
	}
	a.lines = append(a.lines, fmt.Sprintf("# bit %d of byte %d of %s (%s) is flipped", bit, at, p.file,
		p.what))
	c := v.call()
	c.within = b.took + a.t.f.more
	r, err := a.do(ctx, c)
	if err != nil || a.broken {
		return err
	}
	return a.answers(ctx, p, v, b, r)
}

// answers checks the result of a verb on damaged files. It has to be an error, or the
// answer of the baseline.
func (a *attempt) answers(ctx context.Context, p place, v verb, b *baseline, r *result) error {
	// If the damage makes a folder look like something else, or hides a backup, fddhdb
	// reports an error of the command line.
	file := p.file
	marker := p.stock == "repo" || file == "FDDHDB" || file == "store" ||
		strings.HasPrefix(file, "store/marker")
	switch {
	case r.code == 2 && !marker && !strings.Contains(r.err, "no database") &&
		!strings.Contains(r.err, "not a database"):
		a.found("exit code 2 blames the command line: %s", brief(r.err))
		return nil
	case r.code != 0 && v.name() != "repair":
		return nil
	case v.name() == "repair" && r.code != 0 && r.code != 3:
		return nil
	case strings.Contains(r.err, "commit") && (v.database() == "killed" || file == "COMMITS"):
		return nil // the verb tells that some are missing
	case v.name() != "repair" && b.same && !b.answered(r, a.dir):
		a.found("another answer than without damage, and no error: %s", difference(b.out, answer(r, a.dir)))
		return nil
	}
	files, err := outputs(a.dir)
	if err != nil {
		return err
	}
	for name, sum := range b.files {
		if b.same && files[name] != sum {
			a.found("%s is another file than without damage, and there was no error", name)
		}
	}
	if v.name() == "repair" {
		sound, err := a.do(ctx, call{args: []string{"verify", "x.db", "--deep"}})
		if err == nil && sound.code != 0 && !a.broken {
			a.found("what was repaired is not sound: %v %s", sound, brief(sound.out))
		}
		return err
	}
	if !v.writes || !b.stable || v.database() == "killed" {
		return nil
	}
	c := lookCall("x.db", v.database())
	c.within = time.Minute
	look, err := a.do(ctx, c)
	if err == nil && look.code == 0 && look.out != b.after.text && !a.broken {
		a.found("it has succeeded, and what is there is not what it does: %s",
			difference(b.after.text, look.out))
	}
	return err
}

// answered reports whether a result is the same as without damage.
func (b *baseline) answered(r *result, dir string) bool {
	return answer(r, dir) == b.out
}

// tookSeconds finds the times in an output: two runs take the same time only by luck.
var tookSeconds = regexp.MustCompile(`(?m)^seconds .*$|"seconds":[0-9.e+-]+|\b[0-9.]+ [mµ]?s\b`)

// answer returns the output of a verb without the folder and the times.
func answer(r *result, dir string) string {
	return tookSeconds.ReplaceAllString(strings.ReplaceAll(r.out, dir, ""), "seconds")
}

// flip flips a bit; of an empty file it writes a byte.
func flip(path string, at int64, bit int) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		b[0] = 0
	}
	b[0] ^= 1 << bit
	if _, err := f.WriteAt(b[:], at); err != nil {
		return err
	}
	return f.Close()
}

// places returns the places where bits are flipped: every block of every table, and
// every 4 KiB of all other files. kinds are the kinds of records that stand there.
func (s *stocks) places() (all []place, kinds []string, err error) {
	first := map[string]int{} // the largest block for each kind
	add := func(p place, kinds []string) {
		p.rank = 1
		all = append(all, p)
		for _, k := range kinds {
			if i, there := first[k]; !there || all[i].length < p.length {
				first[k] = len(all) - 1
			}
		}
	}
	for _, stock := range []string{"main", "anchors", "killed", "repo"} {
		dir := filepath.Join(s.dir, stock)
		if stock != "repo" {
			dir = s.path(stock)
		}
		names, err := regularFiles(dir)
		if err != nil {
			return nil, nil, err
		}
		for _, name := range names {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				return nil, nil, err
			}
			if strings.HasSuffix(name, ".sst") && stock != "killed" {
				blocks, err := tableBlocks(filepath.Join(dir, name))
				if err != nil {
					return nil, nil, err
				}
				for _, b := range blocks {
					b.place.stock, b.place.file = stock, name
					add(b.place, append(b.kinds, stock+" largest"))
					for _, k := range b.kinds {
						if !slices.Contains(kinds, k) {
							kinds = append(kinds, k)
						}
					}
				}
				continue
			}
			if strings.HasSuffix(name, ".sst") {
				continue // main has the same
			}
			sort := regexp.MustCompile(`[0-9a-f]{6,}[^/]*`).ReplaceAllString(name, "*")
			for at := int64(0); at == 0 || at < info.Size(); at += 4096 {
				add(place{stock: stock, file: name, offset: at, length: min(4096, info.Size()-at),
					what: "a part of the file"}, []string{stock + "/" + sort})
			}
		}
	}
	for _, i := range first {
		all[i].rank = 0
	}
	slices.Sort(kinds)
	return all, kinds, nil
}

// A tableBlock is a block of a table.
type tableBlock struct {
	place
	kinds []string // kinds of the records in it, in hexadecimal
}

// tableBlocks returns the blocks of a table. Blocks of data have the kinds of their
// records.
func tableBlocks(path string) (blocks []tableBlock, err error) {
	f, err := vfs.Default.Open(path)
	if err != nil {
		return nil, err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return nil, err
	}
	r, err := sstable.NewReader(context.Background(), readable, sstable.ReaderOptions{
		Mergers: sstable.Mergers{"fddhdb.blocks-and-layers": &pebble.Merger{
			Name: "fddhdb.blocks-and-layers"}},
	})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	l, err := r.Layout()
	if err != nil {
		return nil, err
	}
	add := func(what string, all ...block.Handle) {
		for _, h := range all {
			if h.Length > 0 {
				blocks = append(blocks, tableBlock{place: place{offset: int64(h.Offset),
					length: int64(h.Length), what: "a block: " + what}})
			}
		}
	}
	ends := map[uint64]int{} // ends of the blocks of data
	for i, h := range l.Data {
		add("data", h.Handle)
		ends[h.Offset+h.Length+block.TrailerLen] = i
	}
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	var first []byte
	for kv := it.First(); kv != nil; kv = it.Next() {
		key := kv.K.UserKey
		if first == nil {
			first = slices.Clone(key)
		}
		// This counts the blocks from the first to the one with the key. So it is the
		// end of that block.
		end, err := r.EstimateDiskUsage(first, key, sstable.NoReadEnv)
		if err != nil {
			return nil, err
		}
		if i, there := ends[end]; there {
			if k := fmt.Sprintf("%02x", key[:1]); !slices.Contains(blocks[i].kinds, k) {
				blocks[i].kinds = append(blocks[i].kinds, k)
				blocks[i].what += " " + k
			}
		}
	}
	add("index", l.Index...)
	add("index of indexes", l.TopIndex)
	for _, h := range l.Filter {
		add("filter", h.Handle)
	}
	add("values", l.ValueBlock...)
	add("other", l.ValueIndex, l.RangeDel, l.RangeKey, l.Properties, l.MetaIndex, l.Footer)
	return blocks, it.Error()
}

// tell prints a line.
func (f *field) tell(format string, args ...any) { fmt.Fprintf(f.out, "field: "+format+"\n", args...) }
