package rest

import (
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/report"
)

// Databases are the databases of a server.
type Databases struct {
	Databases []string `json:"databases" nullable:"false"`
	Version   string   `json:"version,omitempty" doc:"of the server"`
	Scope     string   `json:"scope" doc:"of the sender: read, write or admin"`
}

// Collections are the names of collections.
type Collections struct {
	Collections []string `json:"collections" nullable:"false"`
}

// A Collection is a collection with its schema.
type Collection struct {
	Name   string    `json:"name"`
	ID     uint32    `json:"id" doc:"a number that no other collection gets"`
	Schema db.Schema `json:"schema"`
	Texts  []string  `json:"texts,omitempty" doc:"modalities whose vectors the server makes of texts"`
	Files  []string  `json:"files,omitempty" doc:"modalities whose vectors the server makes of files, such as pictures"`

	// Hashed and Near are of the hash of the collection.
	Hashed db.EncoderInput `json:"hashed,omitempty" doc:"what the server makes codes of, by the hash of the collection: text or file"`
	Near   int             `json:"near,omitempty" doc:"distance of copies by that hash, to begin with, in bits"`
}

// Count is a number of items.
type Count struct {
	Count int `json:"count"`
}

// A Filter says which items.
type Filter struct {
	Where string `json:"where,omitempty" doc:"items that match; empty: all"`
	Args  Args   `json:"args,omitempty" doc:"the values of the placeholders ? in where, in order"`
}

// Deletion says which items to delete: those with keys, or those that match.
type Deletion struct {
	Keys  []string `json:"keys,omitempty"`
	Where *string  `json:"where,omitempty" doc:"delete all items that match"`
	Args  Args     `json:"args,omitempty" doc:"the values of the placeholders ? in where, in order"`
}

// Deleted is the number of items that were deleted.
type Deleted struct {
	Deleted int `json:"deleted"`
}

// Facets are a db.FacetQuery.
type Facets struct {
	By    string `json:"by" doc:"label, or the name of a field"`
	Where string `json:"where,omitempty" doc:"count only items that match"`
	Args  Args   `json:"args,omitempty" doc:"the values of the placeholders ? in where, in order"`
	Limit int    `json:"limit,omitempty" doc:"number of counts, the largest first; 0: all"`
}

// A Likeness is a db.Likeness.
type Likeness struct {
	Radius        int     `json:"radius,omitempty" doc:"greatest distance between codes, in bits; 0: equal codes"`
	Modality      string  `json:"modality,omitempty" doc:"compare its vectors, not codes"`
	MinSimilarity float32 `json:"min_similarity,omitempty" doc:"least similarity of vectors"`
	Recall        float64 `json:"recall,omitempty" doc:"share of the similar items that are found; 1: all"`
	Where         string  `json:"where,omitempty" doc:"only items that match"`
	Args          Args    `json:"args,omitempty" doc:"the values of the placeholders ? in where, in order"`
	Limit         int     `json:"limit,omitempty" doc:"number of lines; 0: all"`
	After         string  `json:"after,omitempty" doc:"cursor: go on behind it"`
}

// NewLikeness returns the form of a likeness.
func NewLikeness(l db.Likeness, after string) Likeness {
	return Likeness{l.Radius, l.Modality, l.MinSimilarity, l.Recall, l.Where, l.Args, 0, after}
}

// Likeness returns the likeness of the form.
func (l *Likeness) Likeness() db.Likeness {
	return db.Likeness{Radius: l.Radius, Modality: l.Modality, MinSimilarity: l.MinSimilarity,
		Recall: l.Recall, Where: l.Where, Args: l.Args}
}

// Pairs are a db.PairQuery.
type Pairs struct {
	Likeness
	Against string `json:"against,omitempty" doc:"another collection, for pairs of an item of each"`
}

// Groups are a db.GroupQuery.
type Groups struct {
	Likeness
	Keep      string `json:"keep,omitempty" doc:"oldest (default), newest, max FIELD, min FIELD or an expression"`
	Connected bool   `json:"connected,omitempty" doc:"join groups that have an item in common"`
}

// Labels are labels in the order in which they first came.
type Labels struct {
	Labels []string `json:"labels" nullable:"false"`
}

// Renaming gives a label another name.
type Renaming struct {
	Old string `json:"old"`
	New string `json:"new"`
}

// Embedding asks for what a text or a file becomes as a query.
type Embedding struct {
	From string `json:"from,omitempty" doc:"modality of the vector; default: the only one that has an encoder"`
	Text string `json:"text,omitempty"`
	File []byte `json:"file,omitempty" doc:"contents of a file, such as a picture"`
}

// Embedded is what a text or a file becomes as a query: its code, where the collection has a hash, or else
// its vector. The names are those of Query.
type Embedded struct {
	From   string `json:"from,omitempty" doc:"modality of the vector"`
	Vector Vector `json:"vector,omitzero"`
	Code   Hex    `json:"code,omitempty" doc:"in hexadecimal digits, by the hash of the collection, or of labels that it has learned"`
}

// Encoding asks for a code: of a query, or of an item without labels.
type Encoding struct {
	From   string `json:"from,omitempty" doc:"modality of the query"`
	Vector Vector `json:"vector,omitzero" doc:"the code of a query by this vector"`
	Key    string `json:"key,omitempty" doc:"the code of a query by this item"`
	Code   Hex    `json:"code,omitempty" doc:"the code of a query by this code: itself"`
	Text   string `json:"text,omitempty" doc:"the code of a query by this text"`
	Item   *Item  `json:"item,omitempty" doc:"the code that this item would get without labels; if it has labels alone, the code that is learned for them"`
}

// Code is a code.
type Code struct {
	Code Hex `json:"code" doc:"in hexadecimal digits"`
	Bits int `json:"bits"`
}

// Evaluation is a db.Evaluation.
type Evaluation struct {
	Queries map[string][]Vector `json:"queries" doc:"vectors of the queries, by modality"`
	Labels  [][]string          `json:"labels" doc:"of each query"`
	Truth   [][]string          `json:"truth,omitzero" doc:"labels of all items, in database order"`
	Where   string              `json:"where,omitempty" doc:"rank only items that match"`
	Args    Args                `json:"args,omitempty" doc:"the values of the placeholders ? in where, in order"`
	Top     int                 `json:"top,omitempty" doc:"N of the figures at N; 50 by default"`
}

// NewEvaluation returns the form of an evaluation, which it aliases.
func NewEvaluation(e *db.Evaluation) *Evaluation {
	f := &Evaluation{Queries: map[string][]Vector{}, Labels: e.Labels, Truth: e.Truth, Where: e.Where,
		Args: e.Args, Top: e.Top}
	for name, rows := range e.Queries {
		for _, x := range rows {
			f.Queries[name] = append(f.Queries[name], Vector{Dense: x})
		}
	}
	for name, rows := range e.Sparse {
		for i := range rows {
			f.Queries[name] = append(f.Queries[name], Vector{Sparse: &rows[i]})
		}
	}
	return f
}

// Evaluation returns the evaluation of the form. The vectors of a modality are of one kind.
func (f *Evaluation) Evaluation() (db.Evaluation, error) {
	e := db.Evaluation{Queries: map[string][][]float32{}, Sparse: map[string][]db.Sparse{}, Labels: f.Labels,
		Truth: f.Truth, Where: f.Where, Args: f.Args, Top: f.Top}
	for name, rows := range f.Queries {
		for i, x := range rows {
			if x.IsZero() || (x.Sparse == nil) != (rows[0].Sparse == nil) {
				return e, fault.Invalid("queries of %q: query %d has no vector, or one of another kind",
					name, i)
			}
			if x.Sparse != nil {
				e.Sparse[name] = append(e.Sparse[name], *x.Sparse)
			} else {
				e.Queries[name] = append(e.Queries[name], x.Dense)
			}
		}
	}
	return e, nil
}

// Retrievals are the figures of an evaluation.
type Retrievals struct {
	Retrievals []report.Retrieval `json:"retrievals" nullable:"false"`
}

// Spaces are the spaces of codes of a collection.
type Spaces struct {
	Spaces []report.SpaceInfo `json:"spaces" nullable:"false"`
}

// Space names a space of codes.
type Space struct {
	Space db.Space `json:"space"`
}

// Revision names a revision of a space.
type Revision struct {
	Space    db.Space `json:"space,omitempty" doc:"0: the active one"`
	Revision uint32   `json:"revision"`
}

// Backup says where to make a backup, and of what.
type Backup struct {
	URL string `json:"url" doc:"a place that the server reaches: file:///path or s3://bucket/prefix"`
	db.BackupOptions
}

// Verification is the result of a verification.
type Verification struct {
	*report.Verification
	Findings int `json:"findings" doc:"number of findings, each of which was an event"`
}

// Imported says what an import has stored.
type Imported struct {
	Items   int       `json:"items"`
	Skipped int       `json:"skipped,omitempty" doc:"with on_error=skip: items that are left out"`
	Reasons []Skipped `json:"reasons,omitempty" doc:"why, of the first 100"`
}

// Skipped is an item that an import has left out.
type Skipped struct {
	Row    int    `json:"row" doc:"of the body, from 0"`
	Reason string `json:"reason"`
}

// CardQuery says which items to show: those with keys, or those that match.
type CardQuery struct {
	Keys  []string `json:"keys,omitempty" doc:"items with these keys, in this order, as far as they exist"`
	Where string   `json:"where,omitempty" doc:"items that match; empty: all"`
	Args  Args     `json:"args,omitempty" doc:"the values of the placeholders ? in where, in order"`
	Limit int      `json:"limit,omitempty" doc:"of items that match; 24 by default"`
	Whole bool     `json:"whole,omitempty" doc:"long texts are not cut"`
	Seed  *uint64  `json:"seed,omitempty" doc:"choose at random, for each seed others; default: the first ones"`
}

// Cards are items as they are shown to people.
type Cards struct {
	Cards []Card `json:"cards" nullable:"false"`
	Total int    `json:"total" doc:"number of items that match"`
}

// A Card is an item as it is shown to people: without vectors and payload.
type Card struct {
	Key          string   `json:"key"`
	Labels       []string `json:"labels,omitempty"`
	Fields       Fields   `json:"fields,omitempty"`
	Modalities   []string `json:"modalities,omitempty" doc:"that it has vectors of"`
	Code         Hex      `json:"code,omitempty"`
	CodeFrom     string   `json:"code_from,omitempty"`
	PayloadBytes int      `json:"payload_bytes,omitempty"`
	PayloadType  string   `json:"payload_type,omitempty" doc:"by its content"`
	Text         string   `json:"text,omitempty" doc:"the payload, if it is text"`
	Picture      string   `json:"picture,omitempty" doc:"where its picture is, below the path of the item"`
}

// MapQuery asks for a map of items.
type MapQuery struct {
	By    string `json:"by,omitempty" doc:"a dense modality, whose vectors are drawn; default: the codes, or without codes the first dense modality"`
	Where string `json:"where,omitempty" doc:"items that match; empty: all"`
	Args  Args   `json:"args,omitempty" doc:"the values of the placeholders ? in where, in order"`
	Limit int    `json:"limit,omitempty" doc:"draw so many of them, at random; 10000 by default and at most"`
	Seed  uint64 `json:"seed,omitempty" doc:"for each seed others"`
}

// A Map places items in a plane: what is near in space is near in the plane, as far as a plane can show it.
// Element i of Keys, X, Y and Label is about one item.
type Map struct {
	By     string    `json:"by" doc:"the modality that is drawn; empty: codes"`
	Keys   []string  `json:"keys" nullable:"false"`
	X      []float32 `json:"x" nullable:"false" doc:"from -1 to 1"`
	Y      []float32 `json:"y" nullable:"false" doc:"from -1 to 1"`
	Label  []int     `json:"label" nullable:"false" doc:"a place in labels, of the item's first label; -1: none"`
	Labels []string  `json:"labels" nullable:"false" doc:"the most frequent first"`
	Total  int       `json:"total" doc:"number of items that match"`
	Shown  float64   `json:"shown" doc:"share of the variance that the plane shows"`
}

// A StreamError ends a stream of lines that has failed.
type StreamError struct {
	Error *Problem `json:"error"`
}
