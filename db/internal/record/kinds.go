package record

import "github.com/fddhdb/fddhdb/codec"

// A Kind is what all records of one kind have in common. Deletions, copies, verifications and
// repairs go by it.
type Kind struct {
	Scope       Scope // 0: there are no such records
	Origin      Origin
	ForLearning bool // nothing but learning needs it: index-only copies do not have it
}

// A Scope says what a record belongs to, and is deleted with. The key names that behind the
// kind. Each scope lies in the one before it.
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
	codec.KindDatabase:   {Scope: OfDatabase},
	codec.KindName:       {Scope: OfDatabase},
	codec.KindCollection: {Scope: OfCollection},
	codec.KindLabel:      {Scope: OfCollection},
	codec.KindCounters:   {Scope: OfCollection},
	codec.KindMark:       {Scope: OfDatabase},
	codec.KindKey:        {Scope: OfCollection},
	codec.KindItem:       {Scope: OfCollection},
	codec.KindFeatures:   {Scope: OfCollection, ForLearning: true},
	codec.KindRowKeys:    {Scope: OfCollection},
	codec.KindSpace:      {Scope: OfSpace},
	codec.KindModel:      {Scope: OfSpace},
	codec.KindStatistics: {Scope: OfSpace, Origin: Derived, ForLearning: true},
	codec.KindRevision:   {Scope: OfSpace},
	codec.KindOnlineRows: {Scope: OfSpace}, // index-only copies have one of its sets, SetRecode
	codec.KindOutbox:     {Scope: OfSpace, Origin: Derived, ForLearning: true},
	codec.KindLessons:    {Scope: OfSpace, ForLearning: true},
	codec.KindRowCodes:   {Scope: OfSpace, Origin: Coded},
	codec.KindCodes:      {Scope: OfSpace, Origin: Coded},
	codec.KindCodeRows:   {Scope: OfSpace, Origin: Coded},
	codec.KindProjection: {Scope: OfSpace, Origin: Derived},
	codec.KindSubstring:  {Scope: OfSpace, Origin: Derived},
	codec.KindRows:       {Scope: OfCollection}, // the sets of labels are derived
	codec.KindFieldRows:  {Scope: OfCollection, Origin: Derived},
	codec.KindIndex:      {Scope: OfCollection, ForLearning: true},
	codec.KindCentre:     {Scope: OfCollection, ForLearning: true},
	codec.KindEntries:    {Scope: OfCollection, Origin: Derived, ForLearning: true},
	codec.KindStale:      {Scope: OfCollection, Origin: Derived, ForLearning: true},
}

// KindOf returns what records have in common whose keys begin with this byte.
func KindOf(kind byte) Kind { return kinds[kind] }

// Kinds returns the kinds of records that belong to something of a scope, or to something in
// that, in the order of keys: Kinds(OfCollection) are all that a collection has, those of its
// spaces included, and Kinds(OfDatabase) are all that there are.
func Kinds(within Scope) []byte {
	var all []byte
	for kind, k := range kinds {
		if k.Scope >= within {
			all = append(all, byte(kind))
		}
	}
	return all
}
