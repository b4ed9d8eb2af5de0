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
}

// Stats are figures about a collection.
type Stats struct {
	*db.CollectionStats
	DiskBytes int64 `json:"disk_bytes,omitempty" doc:"an estimate; with the parameter disk"`
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

// Labels are labels in the order in which they first came.
type Labels struct {
	Labels []string `json:"labels" nullable:"false"`
}

// Renaming gives a label another name.
type Renaming struct {
	Old string `json:"old"`
	New string `json:"new"`
}

// Encoding asks for a code: of a query by a vector, or of an item without labels.
type Encoding struct {
	From   string `json:"from,omitempty" doc:"modality of vector"`
	Vector Vector `json:"vector,omitzero" doc:"the code of a query by this vector"`
	Item   *Item  `json:"item,omitempty" doc:"the code that this item would get without labels"`
}

// Code is a code.
type Code struct {
	Code Hex `json:"code" doc:"in hexadecimal digits"`
	Bits int `json:"bits"`
}

// Explained is an answer, and how it was found.
type Explained struct {
	Explain *report.Explain `json:"explain"`
	Result  *db.Result      `json:"result"`
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
	Pinned   bool     `json:"pinned,omitempty" doc:"of :pin: keep the revision"`
}

// Indexes are the indexes of vectors of a collection.
type Indexes struct {
	Indexes []report.VectorIndex `json:"indexes" nullable:"false"`
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

// A StreamError ends a stream of lines that has failed.
type StreamError struct {
	Error *Problem `json:"error"`
}
