package rest

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/fddhdb/fddhdb/db"
)

// Hex is the bytes of a code, as hexadecimal digits in JSON.
type Hex []byte

// MarshalText implements encoding.TextMarshaler.
func (x Hex) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, x), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (x *Hex) UnmarshalText(b []byte) (err error) {
	if *x, err = hex.AppendDecode(nil, b); err != nil {
		return fmt.Errorf("a code has two hexadecimal digits for each byte: %w", err)
	}
	return nil
}

// An Item is an item to store. Its JSON is that of a db.Item, in which a dense vector may also be text (see
// Vector). Labels that are missing and labels that are empty differ, as Merge tells them apart.
type Item struct {
	Key        string            `json:"key,omitempty"`
	Vectors    map[string]Vector `json:"vectors,omitempty"`
	Labels     []string          `json:"labels,omitzero"`
	Fields     Fields            `json:"fields,omitempty"`
	Payload    []byte            `json:"payload,omitempty"`
	Code       Hex               `json:"code,omitempty"`
	CodeFrom   string            `json:"code_from,omitempty"`  // of an item that was read; ignored
	Modalities []string          `json:"modalities,omitempty"` // likewise
}

// NewItem returns the form of an item, which it aliases.
func NewItem(it *db.Item) *Item {
	if it == nil {
		return nil
	}
	f := &Item{it.Key, nil, it.Labels, it.Fields, it.Payload, it.Code, it.CodeFrom, it.Modalities}
	if n := len(it.Vectors) + len(it.Sparse); n > 0 {
		f.Vectors = make(map[string]Vector, n)
	}
	for name, x := range it.Vectors {
		f.Vectors[name] = Vector{Dense: x}
	}
	for name, x := range it.Sparse {
		f.Vectors[name] = Vector{Sparse: &x}
	}
	return f
}

// Item returns the item of the form, which it aliases.
func (f *Item) Item() *db.Item {
	if f == nil {
		return nil
	}
	it := &db.Item{Key: f.Key, Labels: f.Labels, Fields: f.Fields, Payload: f.Payload, Code: f.Code,
		CodeFrom: f.CodeFrom, Modalities: f.Modalities}
	for name, v := range f.Vectors {
		switch {
		case v.Sparse != nil:
			if it.Sparse == nil {
				it.Sparse = map[string]db.Sparse{}
			}
			it.Sparse[name] = *v.Sparse
		case v.Dense != nil:
			if it.Vectors == nil {
				it.Vectors = map[string][]float32{}
			}
			it.Vectors[name] = v.Dense
		}
	}
	return it
}

// Fields are the values of fields. A number without a point and an exponent is a whole number; null is no
// value.
type Fields map[string]any

// UnmarshalJSON implements json.Unmarshaler.
func (f *Fields) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var values map[string]any
	if err := d.Decode(&values); err != nil {
		return err
	}
	for name, v := range values {
		switch v := v.(type) {
		case nil:
			delete(values, name)
		case json.Number:
			values[name] = number(v)
		case string, bool:
		default:
			return fmt.Errorf("field %q: %T is no value", name, v)
		}
	}
	*f = values
	return nil
}

// A Change is one change of a batch. It has one of Put, Merge, Delete, Expect, Labels and Mark.
type Change struct {
	Collection string       `json:"collection,omitempty" doc:"of all but a mark"`
	Put        *Item        `json:"put,omitempty" doc:"store this item"`
	Merge      *Item        `json:"merge,omitempty" doc:"set the parts that this item has"`
	Delete     *string      `json:"delete,omitempty" doc:"delete the item with this key"`
	Expect     *Expectation `json:"expect,omitempty" doc:"store the batch only if this item is as given"`
	Labels     []string     `json:"labels,omitempty" doc:"register these labels, in this order"`
	Mark       *Mark        `json:"mark,omitempty" doc:"keep these bytes under a name"`
}

// An Expectation is what Batch.Expect takes.
type Expectation struct {
	Key  string `json:"key"`
	Item *Item  `json:"item" doc:"the stored item, as it was read; null: there is none"`
}

// A Mark is bytes under a name.
type Mark struct {
	Name  string `json:"name"`
	Value []byte `json:"value" doc:"in base64; empty or null: delete the mark" nullable:"true"`
}

// Written is the answer to a batch.
type Written struct {
	Keys []string `json:"keys" nullable:"false" doc:"of the items that were put and merged, in that order"`
}

// States of a job.
const (
	JobRunning   = "running"
	JobDone      = "done"
	JobFailed    = "failed"
	JobCancelled = "cancelled"
)

// A Job is work that lasts longer than a request.
type Job struct {
	ID         string          `json:"id"`
	Kind       string          `json:"kind" doc:"verb of the request that began it"`
	Database   string          `json:"database"`
	Collection string          `json:"collection,omitempty"`
	State      string          `json:"state" enum:"running,done,failed,cancelled"`
	Stage      string          `json:"stage,omitempty" doc:"of the work, in a word"`
	Done       int64           `json:"done,omitempty" doc:"steps of the stage"`
	Total      int64           `json:"total,omitempty" doc:"steps of the stage; 0: unknown"`
	Began      time.Time       `json:"began"`
	Ended      *time.Time      `json:"ended,omitempty"`
	Result     json.RawMessage `json:"result,omitempty" doc:"of a job that is done"`
	Error      *Problem        `json:"error,omitempty" doc:"of a job that has failed or was cancelled"`
}

// Jobs is a list of jobs.
type Jobs struct {
	Jobs []Job `json:"jobs" nullable:"false"`
}

// A Progress is an event of a job.
type Progress struct {
	Stage string `json:"stage"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
}
