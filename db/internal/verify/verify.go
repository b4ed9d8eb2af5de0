package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
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
	"github.com/fddhdb/fddhdb/db/internal/words"
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
			v.beside(dir, side, sideErr)
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
	muted bool                // records are read once more (compare): findings have been reported

	unread record.KeyRanges            // keys that could not be read or decoded; see lose and skip
	known  map[uint32]*knownCollection // by number: collections that have been looked at
}

// A knownCollection tells how to name the records of a collection, and which spaces it has.
type knownCollection struct {
	name   string
	d      *record.Descriptor // nil: it cannot be read
	spaces map[uint32]bool    // by number; nil: unknown
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

// found reports a finding. After the end of the verification it does nothing.
func (v *verifier) found(f report.Finding) {
	if v.err == nil && !v.muted {
		v.done.Findings++
		v.err = v.report(f)
	}
}

// bad reports a problem of the record under key. Where the record holds many rows or numbers, n is the one
// that the problem is about.
func (v *verifier) bad(key []byte, n uint32, format string, args ...any) {
	f := report.Finding{Record: v.nameOf(key, n), Key: hex.EncodeToString(key),
		Problem: fmt.Sprintf(format, args...)}
	if scope := record.KindOf(key[0]).Scope; scope > record.OfDatabase && len(key) >= scope.KeyBytes() {
		id := binary.BigEndian.Uint32(key[1:])
		f.Collection = fmt.Sprintf("number %d", id)
		if c := v.known[id]; c != nil {
			f.Collection = c.name
		}
		if scope == record.OfSpace {
			f.Space = report.Space(binary.BigEndian.Uint32(key[5:]))
		}
	} else if key[0] == codec.KindName {
		f.Collection = string(key[1:])
	}
	v.found(f)
}

// undecoded reports a record that cannot be decoded, and notes its key: consequences are not reported.
func (v *verifier) undecoded(key []byte, n uint32, err error) {
	v.bad(key, n, "%s", fault.Problem(err))
	v.lose(key)
}

// nameOf names the record under key in findings; see Name.
func (v *verifier) nameOf(key []byte, n uint32) string {
	var d *record.Descriptor
	if record.KindOf(key[0]).Scope > record.OfDatabase && len(key) >= 5 {
		if c := v.known[binary.BigEndian.Uint32(key[1:])]; c != nil {
			d = c.d
		}
	}
	return Name(d, key, n)
}

// Name names the record under key in findings; n is the row or number that is meant, where it has many. d is
// the descriptor of its collection; nil: it is not known, or there is none.
func Name(d *record.Descriptor, key []byte, n uint32) string {
	kind := key[0]
	all := record.KindOf(kind).Name
	if all == "" {
		return "key"
	}
	if codec.CheckKey(key) != nil {
		return all
	}
	modality := func(t uint32) string {
		if d == nil || int64(t) >= int64(len(d.Modalities)) {
			return fmt.Sprint(t)
		}
		return fmt.Sprintf("%q", d.Modalities[t].Name)
	}
	switch kind {
	case codec.KindDatabase:
		if int(key[1]) < len(databaseRecords) {
			return databaseRecords[key[1]].name
		}
	case codec.KindName:
		return "name of the collection"
	case codec.KindCollection:
		return "descriptor"
	case codec.KindLabel:
		return fmt.Sprintf("label %d", codec.LastNumber(key))
	case codec.KindMark:
		return fmt.Sprintf("mark %q", record.Shortened(string(key[1:])))
	case codec.KindKey:
		return fmt.Sprintf("row of key %q", key[5:])
	case codec.KindItem:
		return fmt.Sprintf("item in row %d", codec.LastNumber(key))
	case codec.KindFeatures:
		row, t := codec.FeatureKeyParts(key)
		return fmt.Sprintf("features %s of row %d", modality(uint32(t)), row)
	case codec.KindRowKeys:
		return fmt.Sprintf("key of row %d", n)
	case codec.KindSpace:
		return "space"
	case codec.KindRevision:
		revision, _ := codec.RevisionKeyParts(key)
		return fmt.Sprintf("revision %d", revision)
	case codec.KindOnlineRows:
		switch set, _ := codec.OnlineRowsKeyParts(key); set {
		case codec.SetPending:
			return "rows that the online step has not seen"
		case codec.SetRecode:
			return "rows to be coded again"
		default:
			return fmt.Sprintf("rows of set %d", set)
		}
	case codec.KindRetraction:
		return fmt.Sprintf("retraction %d", codec.RetractionNumber(key))
	case codec.KindLessons:
		return fmt.Sprintf("lesson of row %d", n)
	case codec.KindRowCodes:
		return fmt.Sprintf("code of row %d", n)
	case codec.KindCodes:
		return fmt.Sprintf("code number %d", n)
	case codec.KindCodeRows:
		number, _ := codec.CodeRowsKeyParts(key)
		return fmt.Sprintf("rows of code number %d", number)
	case codec.KindProjection:
		return fmt.Sprintf("projection of row %d", n)
	case codec.KindSubstring:
		table, substring := codec.SubstringKeyParts(key)
		return fmt.Sprintf("posting %d of substring %d", substring, table)
	case codec.KindRows:
		switch set, id, _ := codec.RowsKeyParts(key); set {
		case codec.SetLive:
			return "live rows"
		case codec.SetModality:
			return "rows with modality " + modality(id)
		case codec.SetLabel:
			return fmt.Sprintf("rows with label %d", id)
		default:
			return fmt.Sprintf("rows of set %d, number %d", set, id)
		}
	case codec.KindFieldRows:
		field, _, value := codec.FieldRowsKeyParts(key)
		switch {
		case d == nil || int(field) >= len(d.Fields):
			return fmt.Sprintf("rows of field %d", field)
		case d.Fields[field].Type == record.String:
			return fmt.Sprintf("rows whose field %q is %q", d.Fields[field].Name, value)
		}
		return fmt.Sprintf("rows by field %q, slice %x", d.Fields[field].Name, value)
	case codec.KindFieldWords:
		field, _, term := codec.FieldRowsKeyParts(key)
		name := fmt.Sprintf("field %d", field)
		if d != nil && int(field) < len(d.Fields) {
			name = fmt.Sprintf("field %q", d.Fields[field].Name)
		}
		switch {
		case len(term) > 1 && term[0] == words.Gram:
			return fmt.Sprintf("rows whose %s has the characters %q", name, term[1:])
		case len(term) > 1 && term[0] == words.Word:
			return fmt.Sprintf("rows whose %s has the word %q", name, term[1:])
		case len(term) == 1 && term[0] == words.Long:
			return "rows whose " + name + " is long"
		}
		return fmt.Sprintf("rows whose %s has the unknown term %x", name, term)
	case codec.KindIndex:
		return fmt.Sprintf("index %d of vectors", codec.LastNumber(key))
	case codec.KindCentre:
		return fmt.Sprintf("centre %d of index %d of vectors", codec.LastNumber(key),
			codec.LastNumber(key[:9]))
	case codec.KindEntries:
		return fmt.Sprintf("entry of row %d in index %d of vectors", n, codec.LastNumber(key[:9]))
	case codec.KindStale:
		return fmt.Sprintf("stale rows of index %d of vectors", codec.LastNumber(key[:9]))
	}
	return all
}

// A place is a record, and the row or number in it where it holds many.
type place struct {
	key []byte
	n   uint32
}

// lacking reports the rows that one kind of records has and another has to have, too. hasAt and lacksAt
// return the records that have the row.
func (v *verifier) lacking(has, lacks *roaring.Bitmap, hasAt, lacksAt func(row uint32) []byte) {
	for it := roaring.AndNot(has, lacks).Iterator(); it.HasNext() && v.err == nil; {
		row := it.Next()
		key := lacksAt(row)
		if v.lost(key) {
			continue
		}
		v.bad(key, row, "missing: row %d, by %s", row, v.nameOf(hasAt(row), row))
		if !codec.Merged(key[0]) { // the record is of this row alone: what it should say is not known
			v.lose(key)
		}
	}
}

// sameRows reports the rows that only one of two kinds of records has.
func (v *verifier) sameRows(a, b *roaring.Bitmap, aAt, bAt func(row uint32) []byte) {
	v.lacking(a, b, aAt, bAt)
	v.lacking(b, a, bAt, aAt)
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

// lose notes that the value under a key is not known. The caller reports it.
func (v *verifier) lose(key []byte) { v.unread = v.unread.Add(key, record.KeyAfter(key)) }

// lookEvery is the number of keys between two checks of the context, and reports of progress.
const lookEvery = 1024

// walk calls f with all keys that begin with prefix and have the form of a key, and with their values, which
// f must not keep. A key of another form is a finding. Where the store cannot be read, walk reports and notes
// the skipped range, and goes on behind it. complete reports whether everything under the prefix is known.
func (v *verifier) walk(prefix []byte, f func(key, value []byte)) (complete bool) {
	lo, hi := prefix, codec.PrefixEnd(prefix)
	// Each turn reads up to the next damage. skip finds the place behind it, and the next turn goes
	// on there.
	for from := lo; from != nil && v.err == nil; {
		last, err := v.run(from, hi, f)
		if err == nil {
			break
		}
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
		from = v.skip(prefix, unit, from, hi, err)
	}
	return v.err == nil && !v.lostAny(prefix)
}

// run walks until something cannot be read. last is the last key that could be read, nil if
// none; err is nil if the walk has reached hi, or ended because of v.err.
func (v *verifier) run(lo, hi []byte, f func(key, value []byte)) (last []byte, err error) {
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
			v.bad(last, 0, "%s", fault.Problem(err))
			continue
		}
		f(last, value)
	}
	if err == nil {
		err = it.Error()
	}
	return last, err
}

// entries calls f with every entry of the blocks under prefix and its number, ascending. key is the key of
// the block. f must not keep key or entry. complete reports whether all blocks under the prefix are known.
func (v *verifier) entries(prefix []byte, f func(key []byte, n uint32, entry []byte)) (complete bool) {
	v.walk(prefix, func(key, value []byte) {
		block := codec.LastNumber(key)
		b, err := codec.DecodeBlock(value)
		if err == nil && block > math.MaxUint32/codec.BlockRows {
			err = fmt.Errorf("there is no block %d", block)
		}
		if err != nil {
			v.undecoded(key, block*codec.BlockRows, err)
			return
		}
		for i := 0; i < b.Len() && v.err == nil; i++ {
			f(key, block*codec.BlockRows+uint32(b.Offset(i)), b.Entry(i))
		}
	})
	return v.err == nil && !v.lostAny(prefix)
}

// layer decodes a container of a set of rows; nil: it cannot be decoded, which is reported.
func (v *verifier) layer(key, value []byte, container uint16) *roaring.Bitmap {
	rows := roaring.New()
	if err := record.AddRows(rows, key, value, container); err != nil {
		v.undecoded(key, 0, errors.Unwrap(err))
		return nil
	}
	return rows
}

// skip finds where the store can be read again. from is an unreadable key. skip reports and notes the keys in
// between, and returns where to go on; nil: nowhere.
//
// Either a block of the table cannot be read, with keys that are not known, or one key with a
// merged value that is damaged. Keys are taken as numbers of 8 bytes behind a prefix; unit is the
// least distance of two keys, if that is known. Steps that grow by a factor find a number
// from which reading works; halving the last step then finds about the first such number.
func (v *verifier) skip(prefix int, unit uint64, from, hi []byte, cause error) (next []byte) {
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
		v.bad(from, 0, "cannot be read: %s; the keys from %x up to %x are not looked at",
			fault.Problem(cause), from, end)
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
	_, err := v.first(lo, hi)
	return err == nil
}

// first returns the first key in [lo, hi), nil if there is none; nil as hi is no bound. It fails also if
// the key is there and its value cannot be read.
func (v *verifier) first(lo, hi []byte) (key []byte, err error) {
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return nil, err
	}
	if it.First() {
		key = slices.Clone(it.Key())
		_, err = it.ValueAndErr()
	} else {
		err = it.Error()
	}
	_ = it.Close()
	return key, err
}

// commonPrefix returns the common prefix of a and b. It aliases a.
func commonPrefix(a, b []byte) []byte {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}
