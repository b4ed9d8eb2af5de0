package wire

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/fddhdb/fddhdb/db"
)

// An ID identifies an operation. The client draws it at random. However often an operation gets into the log,
// it is applied once.
type ID [16]byte

func NewID() (id ID) {
	rand.Read(id[:]) // it never fails
	return id
}

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// An Op is an operation in the log of a shard. Its kind determines the fields in use.
type Op struct {
	_    struct{} `cbor:",toarray"`
	ID   ID
	Kind Kind

	// Base is a sequence of the log that the client knew when it made the ID. An operation that comes Memory
	// or more sequences later is refused: replicas no longer remember whether it came before.
	Base uint64

	// Object, if not empty, is the name of an object. For a Write it has the changes, if these are too large
	// for a message; Changes is then empty. For ImportModel and ReviseSpace it has the file of the model.
	Object string
	Size   int64  // of the object, in bytes
	Sum    []byte // SHA-256 of the object

	Changes    []Change
	Collection string     // of all kinds but Write
	Schema     *db.Schema // of CreateCollection
	Space      db.Space   // of ImportModel, ReviseSpace, ActivateSpace and DropSpace: a number means one model on all shards
	Revision   uint32     // of ReviseSpace: a number means the same projections on all shards
	Activate   bool       // of ImportModel: activate the space when it is complete

	// Fence, if not 0, is the number of the lease for the operation. The operation is refused after one of
	// the same collection with a higher number. So if a trainer wrongly believes that it still has the lease,
	// the later one prevails on every shard.
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
	// The part takes over this outcome: it cannot decide the operation if conditions, or refused changes,
	// have keys of other parts.
	Decided bool
	Fault   *Fault
}

// Memory is the number of sequences for which a replica remembers the IDs of operations.
const Memory = 1 << 16

type Kind uint8

const (
	Write            Kind = 1 + iota // makes Changes, all or none
	CreateCollection                 // makes Collection with Schema; does nothing if it exists with that schema
	DropCollection
	ImportModel   // makes a space with the model of Object, and codes for all items
	ActivateSpace // makes Space the one that searches use
	DropSpace
	Purge       // removes the items of other shards: the first message of a part of a shard
	Close       // has all later operations refused with ErrSplit
	Skip        // does nothing: it replaces a message of the shard being split that does not concern this part
	ReviseSpace // makes the next revision of Space from the model of Object, an update of its model
	TakeOver    // refuses later operations on Collection with a lease before Fence
)

// Own reports whether operations of the kind are internal to the cluster: no client waits for their outcome,
// and no replica remembers them.
func (k Kind) Own() bool { return k == Purge || k == Close || k == Skip }

// A Change is one change of an Op.
type Change struct {
	_          struct{} `cbor:",toarray"`
	Collection string
	Kind       ChangeKind
	Item       *Item // of Delete and Expect only the key, of Register only the labels
	Old        *Item // of Expect: the required item; nil: none
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

func (o *Op) Encode() ([]byte, error) { return encode(o) }

// DecodeOp reads an operation, and checks that its required fields are set.
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

// checkChanges refuses incomplete changes.
func checkChanges(changes []Change) error {
	for _, c := range changes {
		if c.Item == nil || c.Kind < Put || c.Kind > Expect {
			return fmt.Errorf("a change of kind %d, item %v", c.Kind, c.Item != nil)
		}
	}
	return nil
}
