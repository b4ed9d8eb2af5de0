package wire

import "github.com/fddhdb/fddhdb/db"

// An Order asks a node for an action of some length. Its action determines the fields in use. The node
// answers with an Answer.
type Order struct {
	_     struct{} `cbor:",toarray"`
	Do    Action
	ID    ID
	Shard int

	File string // id of a backup

	Session    ID // of a training
	Collection string
	From       uint64 // a sequence of the log that the replica must have applied
	Space      db.Space
	Sum        *SumOrder

	Offset int // of Upload
	Data   []byte
}

type Action uint8

const (
	Backup   Action = 1 + iota // makes a backup of Shard. Answer.Data is a vault.Entry as JSON
	Find                       // finds the backup File of Shard. Answer.Data is the vault.Entry as JSON
	Survey                     // begins a session over items of Shard. Answer.Survey describes them
	Sum                        // sums over items of a session. Answer.Data is the sum
	Model                      // Answer.Data is the file of the model of Space
	End                        // ends a session
	Status                     // Answer.Data is a NodeStatus as JSON; Answer.Going is about the order ID
	Rebuild                    // makes the replica of Shard again, of the newest backup and the log
	Upload                     // stores Data, the bytes from Offset on of an order too large for a message
	Uploaded                   // carries out the order ID, which has been uploaded
)

// A Training describes the training items of a shard. Items have numbers in the order of their rows.
type Training struct {
	_        struct{} `cbor:",toarray"`
	Items    int
	Labelled []byte   // items with labels: a roaring bitmap in its portable form
	Has      [][]byte // by modality of the schema: items with a vector
	Labels   []string // in the order of their ids
	Schema   db.Schema
}

// A SumOrder asks for the sum of a pass over items of several shards of a node.
type SumOrder struct {
	_          struct{} `cbor:",toarray"`
	Pass       []byte   // sum.Pass in binary form
	Of         []Stretch
	Modalities []string
	Labels     []string // of all shards, by their ids in the training

	// Known, if not 0, leaves out items that have none of the first Known labels.
	Known int
}

// A Stretch is the training items of one shard.
type Stretch struct {
	_     struct{} `cbor:",toarray"`
	Shard int
	First int    // number of the first item, counted over all shards
	Items []byte // a roaring bitmap
}

func (o *Order) Encode() ([]byte, error) { return encode(o) }

// DecodeOrder reads an order.
func DecodeOrder(b []byte) (*Order, error) {
	o := new(Order)
	return o, decode(b, o)
}
