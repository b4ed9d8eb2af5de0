package wire

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/fddhdb/fddhdb/db"
)

// An ID is the number of an operation, made at random by the client that asks for it. However often an
// operation gets into the log, it is applied once.
type ID [16]byte

// NewID returns a random ID.
func NewID() (id ID) {
	rand.Read(id[:]) // it never fails
	return id
}

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// An Op is an operation in the log of a shard. Its kind says which of its parts count.
type Op struct {
	_    struct{} `cbor:",toarray"`
	ID   ID
	Kind Kind

	// Base is a sequence of the log that the client knew of when it made the ID. An operation that comes
	// Memory sequences later, or more, is refused: by then nobody remembers whether it has come before.
	Base uint64

	// Object, if not empty, is the name of an object: of a Write, whose changes are too large for a
	// message, the changes, and Changes is empty; of ImportModel and ReviseSpace the file of the model.
	Object string
	Size   int64  // of the object, in bytes
	Sum    []byte // its SHA-256

	Changes    []Change
	Collection string     // of all kinds but Write
	Schema     *db.Schema // of CreateCollection
	Space      db.Space   // of ImportModel, ReviseSpace, ActivateSpace and DropSpace: one number, one model, on all shards
	Revision   uint32     // of ReviseSpace: one number, the same projections, on all shards
	Activate   bool       // of ImportModel: the space becomes the active one when it is complete

	// Fence, if not 0, is the number of the lease by which the operation is done: it is refused behind one of
	// the same collection with a higher number. So of two trainers, of which one only thinks that it still
	// has the lease, the later one prevails, on every shard.
	Fence uint64

	// Forward, if not nil, says that the operation comes from the log of a shard that is being split.
	Forward *Forward
}

// A Forward marks an operation that a split has copied from the log of a shard into the log of a part of that
// shard. The part leaves out the changes whose keys belong to other parts.
type Forward struct {
	_   struct{} `cbor:",toarray"`
	Seq uint64   // sequence of the operation in the log of the shard that is being split

	// Decided says that Fault is the outcome of the operation on the shard; nil means that it was applied.
	// The part takes over this outcome: it cannot decide itself where conditions, or changes that were
	// refused, are of keys of other parts.
	Decided bool
	Fault   *Fault
}

// Memory is for how many sequences of the log a replica remembers the IDs of operations.
const Memory = 1 << 16

// A Kind says what an Op does.
type Kind uint8

const (
	Write            Kind = 1 + iota // makes Changes, all or none
	CreateCollection                 // makes Collection with Schema, or does nothing where it is there, as that
	DropCollection
	ImportModel   // makes a space with the model of Object, and codes for all items
	ActivateSpace // makes Space the one that searches use
	DropSpace
	Purge       // removes the items of other shards: the first message of a part of a shard
	Close       // has everything behind it refused with ErrSplit
	Skip        // does nothing: it stands for a message of the shard that is being split that does not concern this part
	ReviseSpace // makes the model of Object, which is an update of that of Space, its next revision
	TakeOver    // refuses what is done to Collection by a lease before Fence from here on
)

// Own reports whether operations of the kind are of the cluster, for itself: they come to nothing that
// anybody waits for, and no replica remembers them.
func (k Kind) Own() bool { return k == Purge || k == Close || k == Skip }

// A Change is one change of an Op.
type Change struct {
	_          struct{} `cbor:",toarray"`
	Collection string
	Kind       ChangeKind
	Item       *Item // of Delete and Expect only the key, of Register only the labels
	Old        *Item // of Expect: what has to be there; nil: nothing
}

// A ChangeKind says what a Change does; see the methods of db.Batch.
type ChangeKind uint8

const (
	Put ChangeKind = 1 + iota
	Merge
	Delete
	Register
	Expect
)

// Encode returns the bytes of the operation.
func (o *Op) Encode() ([]byte, error) { return encode(o) }

// DecodeOp reads an operation, and checks that its parts are there.
func DecodeOp(b []byte) (*Op, error) {
	o := new(Op)
	if err := decode(b, o); err != nil {
		return nil, err
	}
	switch o.Kind {
	case Write:
		if err := checkChanges(o.Changes); err != nil {
			return nil, err
		}
	case CreateCollection:
		if o.Schema == nil {
			return nil, errors.New("a collection without a schema")
		}
	case ImportModel:
		if o.Object == "" || o.Space == 0 {
			return nil, errors.New("a model without an object, or a space without a number")
		}
	case TakeOver:
		if o.Fence == 0 {
			return nil, errors.New("a lease without a number")
		}
	case ReviseSpace:
		if o.Object == "" || o.Revision == 0 {
			return nil, errors.New("a revision without an object, or without a number")
		}
	case DropCollection, ActivateSpace, DropSpace, Purge, Close, Skip:
	default:
		return nil, fmt.Errorf("an operation of kind %d: %w", o.Kind, ErrVersion)
	}
	return o, nil
}

// EncodeChanges returns the bytes of an object of changes, see Op.Object.
func EncodeChanges(changes []Change) ([]byte, error) { return encode(changes) }

// DecodeChanges reads an object of changes.
func DecodeChanges(b []byte) (changes []Change, err error) {
	if err := decode(b, &changes); err != nil {
		return nil, err
	}
	return changes, checkChanges(changes)
}

// checkChanges refuses changes that lack a part.
func checkChanges(changes []Change) error {
	for _, c := range changes {
		if c.Item == nil || c.Kind < Put || c.Kind > Expect {
			return fmt.Errorf("a change of kind %d, item %v", c.Kind, c.Item != nil)
		}
	}
	return nil
}
