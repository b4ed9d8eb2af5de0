package record

import (
	"bytes"
	"slices"
	"sort"

	"github.com/fddhdb/fddhdb/codec"
)

// A Kind has the common properties of all records of one kind. Deletions, copies, verifications and repairs
// use them.
type Kind struct {
	Name        string // of all its records, in findings
	Scope       Scope  // 0: there are no such records
	Origin      Origin
	ForLearning bool // only learning needs it: index-only copies do not have it
}

// A Scope names the part of the database that a record belongs to and is deleted with. The key has the number
// of that part behind the kind. Each scope lies in the one before it.
type Scope byte

const (
	OfDatabase   Scope = 1 + iota
	OfCollection       // named by its number
	OfSpace            // named by the numbers of collection and space
)

// KeyBytes returns how many bytes of a key are the kind and name what the record belongs to.
func (s Scope) KeyBytes() int { return [...]int{0, 1, 5, 9}[s] }

// An Origin says whether a record can tell a repair something that no other record tells.
type Origin byte

const (
	Primary Origin = iota // it can: a repair copies it, and mends the copy
	Derived               // it cannot: a repair does not look at it, and makes it again
	Coded                 // Primary where items bring the codes, Derived where a model gives them
)

// kinds is the one table of all kinds, in the order of keys.
var kinds = [256]Kind{
	codec.KindDatabase:   {Name: "database", Scope: OfDatabase},
	codec.KindName:       {Name: "names of collections", Scope: OfDatabase},
	codec.KindCollection: {Name: "descriptors of collections", Scope: OfCollection},
	codec.KindLabel:      {Name: "labels", Scope: OfCollection},
	codec.KindCounters:   {Name: "counters", Scope: OfCollection},
	codec.KindMark:       {Name: "marks", Scope: OfDatabase},
	codec.KindKey:        {Name: "rows of keys", Scope: OfCollection},
	codec.KindItem:       {Name: "items", Scope: OfCollection},
	codec.KindFeatures:   {Name: "features", Scope: OfCollection, ForLearning: true},
	codec.KindRowKeys:    {Name: "keys of rows", Scope: OfCollection},
	codec.KindSpace:      {Name: "spaces", Scope: OfSpace},
	codec.KindModel:      {Name: "model", Scope: OfSpace},
	codec.KindStatistics: {Name: "statistics", Scope: OfSpace, Origin: Derived, ForLearning: true},
	codec.KindRevision:   {Name: "revisions", Scope: OfSpace},
	// index-only copies have one of its sets, SetRecode
	codec.KindOnlineRows: {Name: "rows of the online step", Scope: OfSpace, Origin: Derived},
	codec.KindRetraction: {Name: "retractions", Scope: OfSpace, Origin: Derived, ForLearning: true},
	codec.KindLessons:    {Name: "lessons", Scope: OfSpace, Origin: Derived, ForLearning: true},
	codec.KindRowCodes:   {Name: "codes of rows", Scope: OfSpace, Origin: Coded},
	codec.KindCodes:      {Name: "codes", Scope: OfSpace, Origin: Coded},
	codec.KindCodeRows:   {Name: "rows of codes", Scope: OfSpace, Origin: Coded},
	codec.KindProjection: {Name: "projections", Scope: OfSpace, Origin: Derived},
	codec.KindSubstring:  {Name: "postings", Scope: OfSpace, Origin: Derived},
	codec.KindRows:       {Name: "sets of rows", Scope: OfCollection}, // the sets of labels are derived
	codec.KindFieldRows:  {Name: "indexed fields", Scope: OfCollection, Origin: Derived},
	codec.KindFieldWords: {Name: "words of fields", Scope: OfCollection, Origin: Derived},
	codec.KindIndex:      {Name: "indexes of vectors", Scope: OfCollection, ForLearning: true},
	codec.KindCentre: {Name: "centres of indexes", Scope: OfCollection, Origin: Derived,
		ForLearning: true},
	codec.KindEntries: {Name: "entries of indexes", Scope: OfCollection, Origin: Derived,
		ForLearning: true},
	codec.KindStale: {Name: "stale rows of indexes", Scope: OfCollection, Origin: Derived,
		ForLearning: true},
}

// KindOf returns the properties of records whose keys begin with this byte.
func KindOf(kind byte) Kind { return kinds[kind] }

// Kinds returns the kinds of records that belong to a scope, or to a scope inside it, in the order of keys:
// Kinds(OfCollection) has all kinds of a collection, with the kinds of its spaces, and Kinds(OfDatabase) has
// all kinds.
func Kinds(within Scope) []byte {
	var all []byte
	for kind, k := range kinds {
		if k.Scope >= within {
			all = append(all, byte(kind))
		}
	}
	return all
}

// A KeyRange is the keys from Lo up to, but without, Hi; a nil Hi is the end of all keys.
type KeyRange struct{ Lo, Hi []byte }

// endsAfter reports whether a key is in the range or before it.
func (r KeyRange) endsAfter(key []byte) bool { return r.Hi == nil || bytes.Compare(key, r.Hi) < 0 }

// KeyRanges are ranges that do not overlap, ascending: a set of keys. Verification and repair collect the
// unreadable keys of a damaged store in one, and report no key in it as missing. The zero value is empty. A
// look-up takes the logarithm of their number.
type KeyRanges []KeyRange

// Overlapping returns the places [from, to) of the ranges that have keys in common with [lo,
// hi).
func (rs KeyRanges) Overlapping(lo, hi []byte) (from, to int) {
	from = sort.Search(len(rs), func(i int) bool { return rs[i].endsAfter(lo) })
	to = from + sort.Search(len(rs)-from,
		func(i int) bool { return hi != nil && bytes.Compare(rs[from+i].Lo, hi) >= 0 })
	return from, to
}

// Has reports whether a key is in one of the ranges.
func (rs KeyRanges) Has(key []byte) bool {
	from, to := rs.Overlapping(key, KeyAfter(key))
	return from < to
}

// Add returns the ranges with [lo, hi) added, merged with the ranges that it overlaps. It copies lo and hi.
// As with append, do not use rs any more.
func (rs KeyRanges) Add(lo, hi []byte) KeyRanges {
	from, to := rs.Overlapping(lo, hi)
	sum := KeyRange{slices.Clone(lo), slices.Clone(hi)}
	if from < to {
		if first := rs[from].Lo; bytes.Compare(first, lo) < 0 {
			sum.Lo = first
		}
		if last := rs[to-1]; hi != nil && last.endsAfter(hi) {
			sum.Hi = last.Hi
		}
	}
	return slices.Replace(rs, from, to, sum)
}

// KeyAfter returns the least key that is greater than key, in memory of the caller's own.
func KeyAfter(key []byte) []byte { return append(slices.Clone(key), 0) }

// Limits on what an item, a batch and a schema may hold. Package db exports most of them.
// Descriptors are checked against them also when they are read.
const (
	MaxKeyBytes     = 1 << 10   // key, in bytes of UTF-8
	MaxNameBytes    = 1 << 8    // names of collections, modalities, fields
	MaxLabelBytes   = 1 << 10   // one label
	MaxLabels       = 1 << 12   // labels of one item
	MaxFieldBytes   = 1 << 20   // one string field
	MaxIndexedBytes = 1 << 10   // one string field that is indexed
	MaxPayloadBytes = 64 << 20  // payload
	MaxDim          = 1 << 20   // dimensions of a modality
	MaxModalities   = 1 << 8    // modalities of a collection
	MaxFields       = 1 << 10   // fields of a collection
	MaxCommandBytes = 1 << 14   // command of an encoder, with a byte for the end of each word
	MaxMarkBytes    = 64 << 10  // value of a mark
	MaxMarksBytes   = 1 << 20   // names and values of the marks of one Batch
	MaxBatchBytes   = 1 << 30   // all items of one Batch
	MaxBulkBytes    = 4 << 30   // the same where all are new items of one collection
	MaxRows         = 1<<32 - 1 // rows, labels, spaces, collections

	MaxFingerprintBytes = 1 << 8 // fingerprint of an encoder
)
