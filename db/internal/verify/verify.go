package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
)

// Folder verifies the database in a folder that no process has open for writing. It locks the folder and
// opens the store for reading only. If damage prevents that, the damage is the one finding.
//
// Folder calls found with each finding, in the caller's goroutine; an error of found ends the verification
// and is returned. Other errors are fault.ErrNotDatabase, ErrFormat, ErrLocked, failures to read that are no
// damage, and the end of ctx.
func Folder(ctx context.Context, cfg *store.Config, dir string, opt Options,
	found func(report.Finding) error) (_ *report.Verification, err error) {
	// The lock is shared with other readers, and keeps writers out: a store can be opened for reading only if
	// it does not change.
	dir, lock, err := store.LockDatabase(cfg.FS, dir, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return locked(ctx, cfg, dir, opt, found)
}

// locked is Folder for a folder that the caller has locked, by its canonical path.
func locked(ctx context.Context, cfg *store.Config, dir string, opt Options,
	found func(report.Finding) error) (_ *report.Verification, err error) {
	kv, err := store.OpenDatabase(dir, cfg, store.NewLog(cfg.Signals), true)
	if errors.Is(err, fault.ErrCorrupt) {
		return &report.Verification{Findings: 1},
			found(report.Finding{Record: "store in " + dir,
				Problem: "it cannot be opened: " + fault.Problem(errors.Unwrap(err))})
	} else if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, kv.Close()) }()
	return Store(ctx, cfg.FS, dir, kv, opt, found)
}

// Store verifies the open store kv of the database in dir, in one snapshot of it: it does not see later
// writes. It calls found as Folder does. A panic, which damage must not cause, is an error. The Verification
// is never nil, even beside an error.
func Store(ctx context.Context, fsys vfs.FS, dir string, kv *pebble.DB, opt Options,
	found func(report.Finding) error) (*report.Verification, error) {
	start := time.Now()
	side, sideErr := store.ReadCommits(fsys, dir) // before the snapshot, which must not be behind it
	// each commit is one batch, or one set of tables, so that any is a whole state
	snap := kv.NewSnapshot()
	defer snap.Close()
	v := &verifier{ctx: ctx, snap: snap, opt: opt, report: found, known: map[uint32]*knownCollection{}}
	err := work.Safely(func() error {
		// The order: blocks of tables, which need no record; the database and the catalogue, which name the
		// parts; the contents of each collection; last the keys that no part has claimed.
		v.tables(fsys, dir, kv)
		v.database()
		if !opt.StoreOnly {
			v.beside(fsys, dir, side, sideErr)
		}
		for _, d := range v.catalogue() {
			v.collection(d)
		}
		v.strangers()
		return v.err
	})
	v.done.Seconds = time.Since(start).Seconds()
	return &v.done, err
}

// Options say how closely to look.
type Options struct {
	Deep      bool           // make codes, projections and statistics again, and compare
	Progress  event.Progress // hears how many records have been read, of an unknown total; may be nil
	StoreOnly bool           // do not compare marker and side file with the store
}

// A verifier looks at one state of a store. It is for one goroutine.
type verifier struct {
	ctx    context.Context
	snap   *pebble.Snapshot           // the state that is verified; belongs to Store
	opt    Options                    // of the call
	report func(report.Finding) error // gets findings; an error ends the verification

	// err is the first error, of report, of ctx or of a helper. It stays: all loops end when they see it, and
	// nothing more is reported. Damage to stored data is no error.
	err   error
	done  report.Verification // counts so far
	stage string              // for progress; see at

	unread record.KeyRanges            // keys that could not be read or decoded; see lose and skip
	known  map[uint32]*knownCollection // by number: collections that have been looked at, for strangers
}

// at begins a stage of progress, and names it.
func (v *verifier) at(format string, args ...any) {
	v.stage = fmt.Sprintf(format, args...)
	v.progress()
}

// progress tells how many records have been read.
func (v *verifier) progress() {
	if v.opt.Progress != nil {
		v.opt.Progress(v.stage, int64(v.done.Records), 0)
	}
}

// look tells how many records have been read, and ends the verification if the context has ended.
func (v *verifier) look() {
	v.progress()
	if v.err == nil {
		v.err = v.ctx.Err()
	}
}

// found reports a problem of the record under key; nil: it has no key. After the end of the verification
// found does nothing.
func (v *verifier) found(f report.Finding, key []byte) {
	if v.err != nil {
		return
	}
	f.Key = hex.EncodeToString(key)
	v.done.Findings++
	v.err = v.report(f)
}

// A reporter reports damage to the records of a collection, or of one of its spaces. The verifiers of both
// have one; the reporter of a space hides the reporter of its collection.
type reporter struct {
	to          *verifier
	collection  string // name
	countersKey []byte // of the collection
	space       uint32 // number; 0: the findings are about the collection
}

// ofSpace returns a reporter for space number id of the collection.
func (r reporter) ofSpace(id uint32) reporter {
	r.space = id
	return r
}

// bad reports a problem of the record under key; what names the record.
func (r reporter) bad(what string, key []byte, format string, args ...any) {
	f := r.about(what)
	f.Problem = fmt.Sprintf(format, args...)
	r.to.found(f, key)
}

// missing is bad for a problem whose cause is the record under key: it is absent, or lacks a fact. If the key
// is lost, the cause has been reported already, and missing does nothing.
func (r reporter) missing(what string, key []byte, format string, args ...any) {
	if !r.to.lost(key) {
		r.bad(what, key, format, args...)
	}
}

// badCounters reports that the counters of the collection are wrong.
func (r reporter) badCounters(format string, args ...any) {
	r.bad("counters", r.countersKey, format, args...)
}

// about returns a finding about the record that what names, without a problem and a key: a walk
// fills them in.
func (r reporter) about(what string) report.Finding {
	return report.Finding{Collection: r.collection, Space: report.Space(r.space), Record: what}
}

// begin sets the stage of progress: the records that are looked at from now on.
func (r reporter) begin(what string) {
	if r.space == 0 {
		r.to.at("collection %s: %s", r.collection, what)
	} else {
		r.to.at("collection %s, space %d: %s", r.collection, r.space, what)
	}
}

// All reading of many keys goes through walk. Pebble ends an iteration at a block that it cannot read, and at
// a value that it cannot merge, and does not say how far the damage reaches. walk goes on behind the damage,
// so one damaged block hides only its own keys. It notes the range, so that no key in it is called missing.

// lost reports whether a key could not be read, or its value could not be decoded. Then the value is unknown,
// and the problem has been reported.
func (v *verifier) lost(key []byte) bool { return v.unread.Has(key) }

// lostAny reports whether any key with the prefix could not be read.
func (v *verifier) lostAny(prefix []byte) bool {
	from, to := v.unread.Overlapping(prefix, codec.PrefixEnd(prefix))
	return from < to
}

// lose notes that the value under a key could not be decoded. The caller reports it.
func (v *verifier) lose(key []byte) { v.unread = v.unread.Add(key, record.KeyAfter(key)) }

// lookEvery is the number of keys between two checks of the context, and reports of progress.
const lookEvery = 1024

// walk calls f with all keys in [lo, hi) that have the form of a key, and with their values, which f must not
// keep. A key of another form is a finding. Where the store cannot be read, walk reports and notes the
// skipped range, and goes on behind it; about is the finding to fill in. complete reports whether everything
// was read; f may have failed to decode a value nevertheless.
func (v *verifier) walk(lo, hi []byte, about report.Finding, f func(key, value []byte)) (complete bool) {
	complete = true
	// Each turn reads up to the next damage. skip finds the place behind it, and the next turn goes
	// on there.
	for from := lo; from != nil && v.err == nil; {
		last, err := v.run(from, hi, about, f)
		if err == nil {
			return complete
		}
		complete = false
		if v.err != nil {
			break
		}
		// skip reads the 8 bytes behind the prefix as a number. If the keys have fewer bytes
		// there, as last has, their numbers differ by a multiple of a power of 256.
		// Keys of rows, 5 bytes behind the prefix, are 2^24 apart, for example: a step of 1 would ask
		// for the same key again and again.
		prefix, unit := len(commonPrefix(lo, hi)), uint64(1)
		if last != nil {
			from = record.KeyAfter(last)
			unit <<= 8 * max(0, 8-max(1, len(last)-prefix))
		}
		from = v.skip(prefix, unit, from, hi, about, err)
	}
	return complete && v.err == nil
}

// walkPrefix is walk for the keys that begin with prefix.
func (v *verifier) walkPrefix(prefix []byte, about report.Finding,
	f func(key, value []byte)) (complete bool) {
	return v.walk(prefix, codec.PrefixEnd(prefix), about, f)
}

// run walks until something cannot be read. last is the last key that could be read, nil if
// none; err is nil if the walk has reached hi, or ended because of v.err.
func (v *verifier) run(lo, hi []byte, about report.Finding,
	f func(key, value []byte)) (last []byte, err error) {
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return nil, err
	}
	defer func() { _ = it.Close() }() // also if a callback panics; it repeats the error of the iterator
	for ok := it.First(); ok && v.err == nil; ok = it.Next() {
		var value []byte
		if value, err = it.ValueAndErr(); err != nil {
			break
		}
		last = append(last[:0], it.Key()...)
		if v.done.Records++; v.done.Records%lookEvery == 0 {
			v.look()
		}
		// f takes keys apart, so it must not see such a key.
		if err := codec.CheckKey(last); err != nil {
			about.Problem = fault.Problem(err)
			v.found(about, last)
			continue
		}
		f(last, value)
	}
	if err == nil {
		err = it.Error()
	}
	return last, err
}

// skip finds where the store can be read again. from is an unreadable key. skip reports and notes the keys in
// between, and returns where to go on; nil: nowhere.
//
// Either a block of the table cannot be read, with keys that are not known, or one key with a
// merged value that is damaged. Keys are taken as numbers of 8 bytes behind a prefix; unit is the
// least distance of two keys, if that is known. Steps that grow by a factor find a number
// from which reading works; halving the last step then finds about the first such number.
func (v *verifier) skip(prefix int, unit uint64, from, hi []byte, about report.Finding,
	cause error) (next []byte) {
	base := append(slices.Clone(from), make([]byte, 8)...)[:prefix+8]
	n := binary.BigEndian.Uint64(base[prefix:])
	step := func(delta uint64) []byte { // from + delta; nil: at hi or beyond
		if delta > math.MaxUint64-n {
			return nil
		}
		to := slices.Clone(base)
		binary.BigEndian.PutUint64(to[prefix:], n+delta)
		if hi != nil && bytes.Compare(to, hi) >= 0 {
			return nil
		}
		return to
	}
	works := func(delta uint64) bool {
		to := step(delta)
		return to == nil || v.readable(to, hi)
	}
	// At most 32 steps: from+failing cannot be read, from+delta may be.
	failing, delta := uint64(0), unit
	for !works(delta) {
		failing = delta
		if delta > math.MaxUint64/skipGrowth {
			delta = math.MaxUint64 // nothing can be read up to hi
			break
		}
		delta *= skipGrowth
	}
	for range skipHalvings {
		middle := failing + (delta-failing)/2
		if middle == failing {
			break
		}
		if works(middle) {
			delta = middle
		} else {
			failing = middle
		}
	}
	if next = step(delta); delta == math.MaxUint64 {
		next = nil
	}
	end := next
	if end == nil {
		end = hi
	}
	if !v.lost(from) { // another walk over the same keys has reported it
		about.Problem = fmt.Sprintf("cannot be read: %s; the keys from %x up to %x are not looked at",
			fault.Problem(cause), from, end)
		v.found(about, from)
	}
	v.unread = v.unread.Add(from, end)
	return next
}

const (
	skipGrowth   = 4  // each step is so many times as long as the one before
	skipHalvings = 12 // less than a thousandth of the skipped keys could have been read
)

// readable reports whether the first key in [lo, hi) can be read, or there is none.
func (v *verifier) readable(lo, hi []byte) bool {
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return false
	}
	if it.First() {
		_, err = it.ValueAndErr()
	} else {
		err = it.Error()
	}
	_ = it.Close()
	return err == nil
}

// commonPrefix returns the common prefix of a and b. It aliases a.
func commonPrefix(a, b []byte) []byte {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

func iterFrom(from []byte) *pebble.IterOptions { return &pebble.IterOptions{LowerBound: from} }

// checkKeys compares the key of each row with the row of each key. It keeps a hash of the key
// of each row, 8 bytes, and clears it when the key leads back to the row: so two keys that
// lead to one row are found too. A collision of hashes, which have a random seed, could hide
// a wrong key with a probability of 2^-63.
func (c *collectionVerifier) checkKeys() {
	c.begin("keys")
	seed := maphash.MakeSeed()
	hash := func(key []byte) uint64 { return maphash.Bytes(seed, key) | 1 }
	// Three passes: hash the key that each row names; clear the hash where a key names that row,
	// and report keys that do not match; report rows that still have a hash, as no key leads to them.
	var keys record.ByBlock[uint64] // by row: hash of its key; 0: it has none, or the key has led back
	keyed := roaring.New()
	c.entries(codec.CollectionKey(codec.KindRowKeys, c.ID), c.about("keys of rows"),
		func(key []byte, row uint32, entry []byte) {
			what := fmt.Sprintf("key of row %d", row)
			if !c.live.Contains(row) {
				c.missing(what, codec.RowsKey(c.ID, codec.SetLive, 0, uint16(row>>16)),
					"it is %q, and the row is not in the live set", entry)
			}
			if uint64(row) >= c.nextRow {
				c.bad(what, key, "the next row is %d", c.nextRow)
			}
			if len(entry) == 0 {
				c.bad(what, key, "it is empty")
			}
			*keys.Put(row) = hash(entry)
			keyed.Add(row)
		})
	for row := range c.strayRows(c.live, keyed) {
		c.missing(fmt.Sprintf("key of row %d", row), codec.NumberKey(codec.KindRowKeys, c.ID,
			row/codec.BlockRows), "missing, and the row is in the live set")
	}
	c.walkPrefix(codec.CollectionKey(codec.KindKey, c.ID), c.about("rows of keys"), func(key, value []byte) {
		what := fmt.Sprintf("row of key %q", key[5:])
		if len(value) != 4 {
			c.bad(what, key, "%d bytes, not 4", len(value))
			c.lose(key)
			return
		}
		row := binary.BigEndian.Uint32(value)
		stored := keys.Get(row)
		if stored == nil || *stored != hash(key[5:]) {
			c.missing(what, codec.NumberKey(codec.KindRowKeys, c.ID, row/codec.BlockRows),
				"it is row %d, which does not have this key", row)
			return
		}
		*stored = 0
	})
	keys.Each(func(row uint32, left *uint64) {
		if *left == 0 || c.err != nil {
			return
		}
		block := codec.NumberKey(codec.KindRowKeys, c.ID, row/codec.BlockRows)
		err := record.BlockEntry(c.snap, block, row, func(entry []byte) error {
			key := codec.ItemKey(c.ID, string(entry))
			c.missing(fmt.Sprintf("row of key %q", entry), key,
				"it does not lead to row %d, which has the key", row)
			return nil
		})
		if err != nil { // it could be read before
			c.bad(fmt.Sprintf("key of row %d", row), block, "%s", fault.Problem(err))
		}
	})
}
