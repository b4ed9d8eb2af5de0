package wire

import "github.com/fddhdb/fddhdb/db"

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
	ID         ID  // of OutcomeOf and Rest
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
	Digest                      // a hash of everything the replica has, and its sequence
	Collections                 // the names of all collections
	Describe                    // the schema and the spaces of Collection
	Rest                        // the next part of an answer that was too large for a message, see Part
	Several                     // Requests to shards of one node, each with its own answer
)

type Answer struct {
	_       struct{} `cbor:",toarray"`
	Fault   *Fault
	Applied uint64 // the answer shows no later sequence of the log; of Digest: the sequence of the digest
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

// A Part is a part of an answer that is too large for a message. The client asks the same node for the rest,
// and joins the bytes of all parts.
type Part struct {
	_     struct{} `cbor:",toarray"`
	ID    ID
	Total int // bytes of the answer
	Data  []byte
}

// An About describes a collection on a replica.
type About struct {
	_      struct{} `cbor:",toarray"`
	Schema db.Schema
	Spaces []Space
}

// A Space is a space of codes of a collection on a replica.
type Space struct {
	_        struct{} `cbor:",toarray"`
	Space    db.Space
	State    db.SpaceState
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
	Hits        hits
	Next        string
	Total       int
	Space       db.Space
	Revision    uint32
	Rerank      db.Rerank
	Facets      []db.Facets
	Approximate bool
}

// A Hit is the form of a db.Hit in messages, see hits. Row is a row of the replica.
type Hit struct {
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
