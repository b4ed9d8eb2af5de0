package wire

import "github.com/fddhdb/fddhdb/db"

// A Request asks a node for something of one of its shards. Its verb says which of its parts count.
type Request struct {
	_     struct{} `cbor:",toarray"`
	Verb  Verb
	Shard int

	// From is the sequence of the log that the replica has to have applied before it answers.
	From uint64

	// Wait is for how long it may wait for that, in milliseconds. Then it answers ErrBehind.
	Wait int

	Collection string
	Key        string // of Get
	Query      *Query // of Several: of those of its requests that have none
	After      string // if not empty, what Query.After is: shards share a query, but for its cursor
	Radius     int    // of Within
	Facets     *db.FacetQuery
	Where      string
	Args       []any
	ID         ID  // of OutcomeOf and Rest
	Offset     int // of Rest: how many bytes there are already
	Requests   []*Request
}

// A Verb says what a Request asks for.
type Verb uint8

const (
	Get         Verb = 1 + iota // the item with Key, with its codes in Query.Space
	Search                      // the first hits of Query
	Within                      // the first hits within Radius, and how many there are
	Count                       // the items that match Where
	Facets                      // Facets
	Labels                      // labels in use
	OutcomeOf                   // what the operation ID has come to
	Digest                      // a hash of everything the replica has, and at which sequence
	Collections                 // the names of all collections
	Describe                    // the schema and the spaces of Collection
	Rest                        // the next part of an answer that was too large for a message, see Part
	Several                     // Requests to shards of one node, each with an answer of its own
)

// An Answer answers a Request.
type Answer struct {
	_       struct{} `cbor:",toarray"`
	Fault   *Fault
	Applied uint64 // a sequence of the log that the answer does not go beyond; of Digest, that it is of
	Item    *Item
	Result  *Result
	N       int
	Facets  *db.Facets
	Names   []string
	Outcome *Outcome
	Digest  []byte
	About   *About
	Part    *Part
	Answers []*Answer // of Several, in the order of its requests
}

// A Part is a part of an answer that is too large for a message. The bytes of all parts are those of the
// answer; who asks comes back for the rest, to the same node.
type Part struct {
	_     struct{} `cbor:",toarray"`
	ID    ID
	Total int // bytes of the answer
	Data  []byte
}

// An About describes a collection, as a replica has it.
type About struct {
	_      struct{} `cbor:",toarray"`
	Schema db.Schema
	Spaces []Space
}

// A Space is a space of codes of a collection, as a replica has it.
type Space struct {
	_        struct{} `cbor:",toarray"`
	Space    db.Space
	State    db.SpaceState
	Bits     int
	Revision uint32
	Items    int
}

// An Outcome is what an operation has come to.
type Outcome struct {
	_     struct{} `cbor:",toarray"`
	ID    ID
	Seq   uint64 // in the log of the shard
	Fault *Fault // nil: it has been applied
}

// Err returns what the operation was refused with, or nil.
func (o *Outcome) Err() error {
	if o.Fault == nil {
		return nil
	}
	return o.Fault
}

// A Result is a db.Result as it travels.
type Result struct {
	_           struct{} `cbor:",toarray"`
	Hits        hits
	Next        string
	Total       int
	Space       db.Space
	Revision    uint32
	Rerank      db.Rerank
	Facets      []db.Facets
	Approximate bool
}

// A Hit is a db.Hit as it travels, see hits. Rows are those of the replica.
type Hit struct {
	Key        string
	Row        uint32
	Distance   int
	Score      float64
	Similarity float32
	Cursor     string
	Item       *Item
}

// ResultOf returns the form in which a result travels. It shares its parts.
func ResultOf(r *db.Result) *Result {
	w := &Result{
		Hits: make(hits, len(r.Hits)), Next: r.Next, Total: r.Total, Space: r.Space, Revision: r.Revision,
		Rerank: r.Rerank, Facets: r.Facets, Approximate: r.Approximate,
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
		Rerank: w.Rerank, Facets: w.Facets, Approximate: w.Approximate,
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
