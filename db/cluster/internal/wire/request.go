package wire

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/report"
)

// A Request asks a node about one of its shards. Its verb determines the fields in use.
type Request struct {
	_     struct{} `cbor:",toarray"`
	Verb  Verb
	Shard int

	// From is the sequence of the log that the replica must have applied before it answers.
	From uint64

	// Wait is how long it may wait for that, in milliseconds. Then it answers ErrBehind.
	Wait int

	Collection string
	Key        string // of Get
	Query      *Query // of Several: for those of its Requests that have no query
	After      string // if not empty, replaces Query.After: shards share a query, except its cursor
	Radius     int    // of Within
	Facets     *db.FacetQuery
	Where      string
	Args       []any
	ID         ID  // of OutcomeOf, Digest and Rest
	Offset     int // of Rest: number of bytes received so far
	Requests   []*Request
}

type Verb uint8

const (
	Get         Verb = 1 + iota // the item with Key, with its codes in Query.Space
	Search                      // the first hits of Query
	Within                      // the first hits within Radius, and the number of all
	Count                       // the number of items that match Where
	Facets                      // Facets
	Labels                      // labels in use
	OutcomeOf                   // the outcome of the operation ID
	Digest                      // the digests that the Compare ID has taken
	Collections                 // the names of all collections
	Describe                    // the schema and the spaces of Collection
	Rest                        // the next part of an answer that was too large for a message, see Part
	Several                     // Requests to shards of one node, each with its own answer
)

type Answer struct {
	_       struct{} `cbor:",toarray"`
	Fault   *Fault
	Applied uint64 // the answer shows no later sequence of the log
	Item    *Item
	Result  *Result
	N       int
	Facets  *db.Facets
	Names   []string
	Outcome *Outcome
	Digests []PartDigest
	About   *About
	Part    *Part
	Answers []*Answer // of Several, in the order of its requests

	// Of orders, see Action.
	Data   []byte
	Survey *Training
	Going  bool // the order is being carried out
}

// MaxAnswer bounds the bytes of an answer that comes in parts.
const MaxAnswer = 1 << 30

// A Part is a part of an answer that is too large for a message. The client asks the same node for the rest,
// and joins the bytes of all parts.
type Part struct {
	_     struct{} `cbor:",toarray"`
	ID    ID
	Total int // bytes of the answer
	Data  []byte
}

// A PartDigest is a hash of a part of what a replica has.
type PartDigest struct {
	_    struct{} `cbor:",toarray"`
	Part string   // collection and kind of record, for people
	Sum  []byte
}

// An About describes a collection on a replica.
type About struct {
	_       struct{} `cbor:",toarray"`
	Schema  db.Schema
	Spaces  []Space
	Indexes []Index
}

// An Index is an index of vectors of a replica, which has it or is to have it.
type Index struct {
	_        struct{} `cbor:",toarray"`
	Modality string
	Recall   float64
	Complete bool
	Entries  int    // vectors that it has
	Problem  string // why it is not complete, if something keeps the replica from it
}

// A Space is a space of codes of a collection on a replica.
type Space struct {
	_        struct{} `cbor:",toarray"`
	Space    db.Space
	State    report.SpaceState
	Bits     int
	Revision uint32
	Items    int
}

// An Outcome is the outcome of an operation.
type Outcome struct {
	_     struct{} `cbor:",toarray"`
	ID    ID
	Seq   uint64 // in the log of the shard
	Fault *Fault // nil: it has been applied
}

// Err returns the error of a refused operation, or nil.
func (o *Outcome) Err() error {
	if o.Fault == nil {
		return nil
	}
	return o.Fault
}

// A Result is the form of a db.Result in messages.
type Result struct {
	_           struct{} `cbor:",toarray"`
	Hits        []Hit
	Next        string
	Total       int
	Space       db.Space
	Revision    uint32
	Rerank      db.Rerank
	Facets      []db.Facets
	Approximate bool
	Distances   []int
}

// A Hit is the form of a db.Hit in messages. Row is a row of the replica.
type Hit struct {
	_          struct{} `cbor:",toarray"`
	Key        string
	Row        uint32
	Distance   int
	Score      float64
	Similarity float32
	Cursor     string
	Item       *Item
}

// ResultOf returns the form of a result in messages. It shares the result's parts.
func ResultOf(r *db.Result) *Result {
	w := &Result{
		Hits: make([]Hit, len(r.Hits)), Next: r.Next, Total: r.Total, Space: r.Space, Revision: r.Revision,
		Rerank: r.Rerank, Facets: r.Facets, Approximate: r.Approximate, Distances: r.Distances,
	}
	for i, h := range r.Hits {
		w.Hits[i] = Hit{
			Key: h.Key, Row: h.Row, Distance: h.Distance, Score: h.Score, Similarity: h.Similarity,
			Cursor: h.Cursor, Item: ItemOf(h.Item),
		}
	}
	return w
}

// Result returns the result, which shares the parts of w.
func (w *Result) Result() *db.Result {
	r := &db.Result{
		Hits: make([]db.Hit, len(w.Hits)), Next: w.Next, Total: w.Total, Space: w.Space, Revision: w.Revision,
		Rerank: w.Rerank, Facets: w.Facets, Approximate: w.Approximate, Distances: w.Distances,
	}
	for i, h := range w.Hits {
		r.Hits[i] = db.Hit{
			Key: h.Key, Row: h.Row, Distance: h.Distance, Score: h.Score, Similarity: h.Similarity,
			Cursor: h.Cursor, Item: h.Item.Item(),
		}
	}
	return r
}

// Encode returns the bytes of the request.
func (r *Request) Encode() ([]byte, error) { return encode(r) }

// DecodeRequest reads a request.
func DecodeRequest(b []byte) (*Request, error) {
	r := new(Request)
	return r, decode(b, r)
}

// Encode returns the bytes of the answer.
func (a *Answer) Encode() ([]byte, error) { return encode(a) }

// DecodeAnswer reads an answer.
func DecodeAnswer(b []byte) (*Answer, error) {
	a := new(Answer)
	return a, decode(b, a)
}

// Encode returns the bytes of the outcome.
func (o *Outcome) Encode() ([]byte, error) { return encode(o) }

// DecodeOutcome reads an outcome.
func DecodeOutcome(b []byte) (*Outcome, error) {
	o := new(Outcome)
	return o, decode(b, o)
}

// A Query is the form of a db.Query in messages: without field names, and with its vector as bytes.
type Query struct {
	_             struct{} `cbor:",toarray"`
	From, To      string
	Vector        floats
	Sparse        *sparse
	Key           string
	Code          []byte
	Words         string
	ExcludeSelf   bool
	Where         string
	Args          []any
	K             int
	Rerank        db.Rerank
	After         string
	MinSimilarity float32
	Recall        float64
	Include       db.Include
	Facets        []string
	Plan          db.Plan

	Space    db.Space // that the query is asked in, and its revision; see db.Collection.InSpace
	Revision uint32
}

// QueryOf returns the form of a query of the active space in messages. It copies slices that the caller may
// change later.
func QueryOf(q db.Query) *Query {
	w := &Query{
		From: q.From, To: q.To, Vector: slices.Clone(q.Vector), Key: q.Key, Code: slices.Clone(q.Code),
		Words: q.Words, ExcludeSelf: q.ExcludeSelf, Where: q.Where, Args: slices.Clone(q.Args), K: q.K,
		Rerank: q.Rerank, After: q.After,
		MinSimilarity: q.MinSimilarity,
		Recall:        q.Recall, Include: q.Include, Facets: slices.Clone(q.Facets), Plan: q.Plan,
	}
	if q.Sparse != nil {
		w.Sparse = &sparse{Index: slices.Clone(q.Sparse.Index), Value: slices.Clone(q.Sparse.Value)}
	}
	return w
}

// Query returns the query, which shares the parts of w.
func (w *Query) Query() db.Query {
	q := db.Query{
		From: w.From, To: w.To, Vector: w.Vector, Key: w.Key, Code: w.Code, Words: w.Words,
		ExcludeSelf: w.ExcludeSelf,
		Where:       w.Where, Args: w.Args, K: w.K, Rerank: w.Rerank, After: w.After,
		MinSimilarity: w.MinSimilarity,
		Recall:        w.Recall, Include: w.Include, Facets: w.Facets, Plan: w.Plan,
	}
	if w.Sparse != nil {
		q.Sparse = &db.Sparse{Index: w.Sparse.Index, Value: w.Sparse.Value}
	}
	return q
}

// SeveralOf combines requests to several shards of a node into one. A query that all of them share travels
// once.
func SeveralOf(requests []*Request) *Request {
	r := &Request{Verb: Several, Requests: requests}
	query := requests[0].Query
	if query == nil {
		return r
	}
	own := make([]Request, len(requests))
	r.Requests = make([]*Request, len(requests))
	for i, q := range requests {
		if q.Query != query {
			return &Request{Verb: Several, Requests: requests}
		}
		own[i] = *q
		own[i].Query = nil
		r.Requests[i] = &own[i]
	}
	r.Query = query
	return r
}

// Each returns the requests of Several, complete with the shared query.
func (r *Request) Each() []*Request {
	for _, q := range r.Requests {
		if r.Query != nil && q != nil && q.Query == nil {
			q.Query = r.Query
		}
	}
	return r.Requests
}

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

	Changes    []Change   // of Write
	Collection string     // of all kinds but Write and Chunk
	Schema     *db.Schema // of CreateCollection
	// of ImportModel, BuildSpace, ReviseSpace, ActivateSpace and DropSpace: a number means one model on all
	// shards
	Space    db.Space
	Revision uint32 // of ReviseSpace: a number means the same projections on all shards
	Rows     uint64 // of BuildSpace: only items of rows below it get codes

	// Fence, if not 0, is the number of the lease for the operation. The operation is refused after one of
	// the same collection with a higher number. So if a trainer wrongly believes that it still has the lease,
	// the later one prevails on every shard.
	Fence uint64

	Of uint64 // of Skip: a sequence

	Modality string  // of IndexVectors and DropIndex
	Recall   float64 // of IndexVectors, see db.IndexOptions

	File []byte // of ImportModel and ReviseSpace: the file of the model

	// Of a Chunk: its number, how many the operation has, and its bytes.
	Chunk, Chunks int
	Data          []byte
}

// Memory is the number of sequences for which a replica remembers the IDs of operations.
const Memory = 1 << 16

type Kind uint8

const (
	Write Kind = 1 + iota // makes Changes, all or none
	// makes Collection with Schema; does nothing if it exists with that schema
	CreateCollection
	DropCollection
	ImportModel   // makes a space with the model of File, in which no item has a code
	ActivateSpace // makes Space the one that searches use
	DropSpace
	ReviseSpace // makes the next revision of Space from the model of File, an update of its model
	TakeOver    // refuses later operations on Collection with a lease before Fence

	// BuildSpace gives items codes in Space. When all have one, the space is complete
	BuildSpace

	Skip    // says that replicas pass over message Of, which comes before it
	Compare // takes a digest of everything that the replica has at this message

	// Chunk is a stretch of the bytes of an operation that is too large for a message. The chunks come in any
	// order, among other messages. The operation has the place of the message that completes it.
	Chunk

	IndexVectors // has replicas index the vectors of Modality, each for itself
	DropIndex    // has them drop the index
)

var kinds = [...]string{Write: "write", CreateCollection: "creation of a collection",
	DropCollection: "drop of a collection", ImportModel: "import of a model",
	ActivateSpace: "activation of a space", DropSpace: "drop of a space", ReviseSpace: "revision of a space",
	TakeOver: "beginning of a training", BuildSpace: "building of a space", Skip: "skip",
	Compare: "comparison", Chunk: "chunk of a large operation", IndexVectors: "index of vectors",
	DropIndex: "drop of an index"}

func (k Kind) String() string {
	if int(k) >= len(kinds) || kinds[k] == "" {
		return fmt.Sprint("operation of kind ", uint8(k))
	}
	return kinds[k]
}

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

const (
	// MaxOp is how many bytes an operation has at most: a replica holds all of them in memory.
	MaxOp = 256 << 20

	// MaxChanges is how many changes a Write has at most.
	MaxChanges = 1 << 17

	// MaxChunk is how many of these a chunk has at most.
	MaxChunk  = 448 << 10
	maxChunks = MaxOp/MaxChunk + 1
)

// Messages returns the operation as messages of the log, each little larger than MaxChunk: one, or its
// chunks. Anything that DecodeOp would refuse is an error.
func (o *Op) Messages() ([][]byte, error) {
	b, err := o.Encode()
	if err != nil {
		return nil, err
	}
	if len(b) > MaxOp {
		return nil, fmt.Errorf("an operation of %d bytes: at most %d are possible", len(b), MaxOp)
	}
	if _, err := DecodeOp(b); err != nil { // for example invalid UTF-8, which no replica would read
		return nil, err
	}
	if len(b) <= MaxChunk {
		return [][]byte{b}, nil
	}
	c := Op{ID: o.ID, Kind: Chunk, Base: o.Base, Chunks: (len(b) + MaxChunk - 1) / MaxChunk}
	var all [][]byte
	for c.Data = range slices.Chunk(b, MaxChunk) {
		m, err := c.Encode()
		if err != nil {
			return nil, err
		}
		all = append(all, m)
		c.Chunk++
	}
	return all, nil
}

// DecodeOp reads an operation, and checks that its required fields are set.
func DecodeOp(b []byte) (*Op, error) {
	o := new(Op)
	if err := decode(b, o); err != nil {
		return nil, err
	}
	switch o.Kind {
	case Write:
		if len(o.Changes) > MaxChanges {
			return nil, fmt.Errorf("%d changes: at most %d are possible", len(o.Changes), MaxChanges)
		}
		for _, c := range o.Changes {
			if c.Item == nil || c.Kind < Put || c.Kind > Expect {
				return nil, fmt.Errorf("a change of kind %d, item %v", c.Kind, c.Item != nil)
			}
		}
	case CreateCollection:
		if o.Schema == nil {
			return nil, errors.New("a collection without a schema")
		}
	case ImportModel:
		if len(o.File) == 0 || o.Space == 0 {
			return nil, errors.New("a model without a file, or a space without a number")
		}
	case TakeOver:
		if o.Fence == 0 {
			return nil, errors.New("a lease without a number")
		}
	case ReviseSpace:
		if len(o.File) == 0 || o.Revision == 0 {
			return nil, errors.New("a revision without a file, or without a number")
		}
	case Chunk:
		if o.Chunk < 0 || o.Chunk >= o.Chunks || o.Chunks > maxChunks || len(o.Data) == 0 ||
			len(o.Data) > MaxChunk {
			return nil, fmt.Errorf("chunk %d of %d, with %d bytes", o.Chunk, o.Chunks, len(o.Data))
		}
	case DropCollection, BuildSpace, ActivateSpace, DropSpace, Skip, Compare, IndexVectors, DropIndex:
	default:
		return nil, fmt.Errorf("an operation of kind %d, which this version has not", o.Kind)
	}
	return o, nil
}
