package rest

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/mih"
)

// A Query is a db.Query, or one by a text. Names and meanings are those of the flags of fddhdb search.
type Query struct {
	From          string   `json:"from,omitempty" doc:"modality of the query vector"`
	To            string   `json:"to,omitempty" doc:"find only items that have this modality"`
	Vector        Vector   `json:"vector,omitzero" doc:"vector of the modality from"`
	Key           string   `json:"key,omitempty" doc:"query by the item with this key"`
	Text          string   `json:"text,omitempty" doc:"query by a text: by the encoder that the collection has for from, by its hash of texts, or else by labels that it has learned"`
	Code          Hex      `json:"code,omitempty" doc:"query by a code, in hexadecimal digits"`
	Words         string   `json:"words,omitempty" doc:"words to find in the texts of fields with an index of words; beside a vector, key, text or code both lists are fused"`
	ExcludeSelf   bool     `json:"exclude_self,omitempty" doc:"leave out the item of key"`
	Where         string   `json:"where,omitempty" doc:"only items that match, such as label = ? AND year > 2000"`
	Args          Args     `json:"args,omitempty" doc:"the values of the placeholders ? in where, in order"`
	K             int      `json:"k,omitempty" doc:"number of hits; 10 by default"`
	Radius        *int     `json:"radius,omitempty" doc:"in bits; for :radius"`
	Rerank        string   `json:"rerank,omitempty" doc:"order of the hits: auto, projection, none or asymmetric"`
	After         string   `json:"after,omitempty" doc:"cursor: go on behind the answer whose next it was"`
	MinSimilarity float32  `json:"min_similarity,omitempty" doc:"only hits of this similarity or more"`
	Recall        float64  `json:"recall,omitempty" doc:"share of the nearest to find, on average; 1 is exact; in a trained collection by vectors"`
	Include       []string `json:"include,omitempty" doc:"parts of items in the hits: labels, fields, payload, vectors, cursor; distances: the number of items at each distance within the radius; explain: how they were found"`
	Facets        []string `json:"facets,omitempty" doc:"count the items of the answer by label or by fields"`
	FacetLimit    int      `json:"facet_limit,omitempty" doc:"number of counts of each, the largest first; 0: all"`
	Plan          string   `json:"plan,omitempty" doc:"how codes are found; auto by default"`
}

// parts are the names of db.Include, in the order of its bits.
var parts = []string{"labels", "fields", "payload", "vectors", "cursor", "distances", "explain"}

// NewQuery returns the form of a query, which it aliases.
func NewQuery(q *db.Query) *Query {
	f := &Query{From: q.From, To: q.To, Key: q.Key, Code: q.Code, Words: q.Words,
		ExcludeSelf: q.ExcludeSelf, Where: q.Where,
		Args: q.Args, K: q.K, After: q.After, MinSimilarity: q.MinSimilarity, Recall: q.Recall,
		Facets: q.Facets}
	if q.Vector != nil || q.Sparse != nil {
		f.Vector = Vector{q.Vector, q.Sparse}
	}
	if q.Rerank != db.RerankAuto {
		f.Rerank = q.Rerank.String()
	}
	if q.Plan != db.PlanAuto {
		f.Plan = q.Plan.String()
	}
	for i, name := range parts {
		if q.Include&(1<<i) != 0 {
			f.Include = append(f.Include, name)
		}
	}
	return f
}

// Query returns the query of the form. An unknown name is an ErrInvalid.
func (f *Query) Query() (q db.Query, err error) {
	q = db.Query{From: f.From, To: f.To, Vector: f.Vector.Dense, Sparse: f.Vector.Sparse, Key: f.Key,
		Code: f.Code, Words: f.Words,
		ExcludeSelf: f.ExcludeSelf, Where: f.Where, Args: f.Args, K: f.K, After: f.After,
		MinSimilarity: f.MinSimilarity, Recall: f.Recall, Facets: f.Facets}
	if f.Rerank != "" {
		if q.Rerank, err = db.ParseRerank(f.Rerank); err != nil {
			return q, err
		}
	}
	if f.Plan != "" {
		all := []db.Plan{mih.PlanAuto, mih.PlanMemory, mih.PlanDisk, mih.PlanScan, mih.PlanFilter}
		i := slices.IndexFunc(all, func(p db.Plan) bool { return p.String() == f.Plan })
		if i < 0 {
			return q, fault.Invalid("unknown plan %q", f.Plan)
		}
		q.Plan = all[i]
	}
	for _, name := range f.Include {
		i := slices.Index(parts, name)
		if i < 0 {
			return q, fault.Invalid("include %q: labels, fields, payload, vectors, cursor, distances and explain are possible",
				name)
		}
		q.Include |= 1 << i
	}
	return q, nil
}

// A Vector is a dense or a sparse vector. In JSON it is an array of numbers; {"i": [...], "v": [...]} if it
// is sparse; or text: the float32 numbers of a dense vector, little endian, in base64.
type Vector struct {
	Dense  []float32
	Sparse *db.Sparse
}

// IsZero makes omitzero leave out a vector that is not there.
func (v Vector) IsZero() bool { return v.Dense == nil && v.Sparse == nil }

// MarshalJSON implements json.Marshaler. Dense vectors are written as text, which is shorter and faster.
func (v Vector) MarshalJSON() ([]byte, error) {
	switch {
	case v.Sparse != nil:
		x := *v.Sparse
		x.Index, x.Value = append([]uint32{}, x.Index...), append([]float32{}, x.Value...) // [], not null
		return json.Marshal(x)
	case v.Dense == nil:
		return []byte("null"), nil
	}
	raw := make([]byte, 0, 4*len(v.Dense))
	for _, x := range v.Dense {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	out := append(make([]byte, 0, 2+base64.StdEncoding.EncodedLen(len(raw))), '"')
	return append(base64.StdEncoding.AppendEncode(out, raw), '"'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *Vector) UnmarshalJSON(b []byte) error {
	*v = Vector{}
	text := bytes.HasPrefix(b, []byte(`"`))
	switch {
	case bytes.Equal(b, []byte("null")):
		return nil
	case !text && bytes.Contains(b, []byte("null")): // package json would take it for 0
		return errors.New("a number of a vector is null, as JSON has no NaN")
	case bytes.HasPrefix(b, []byte("{")):
		v.Sparse = &db.Sparse{}
		return strictly(b, v.Sparse)
	case text:
		var raw []byte
		if err := json.Unmarshal(b, &raw); err != nil || len(raw)%4 != 0 {
			return fmt.Errorf("a vector as text is float32 numbers, little endian, in base64")
		}
		v.Dense = make([]float32, len(raw)/4)
		for i := range v.Dense {
			v.Dense[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
		return nil
	}
	return v.numbers(b)
}

// numbers reads an array of numbers, in a third of the time that package json takes. The syntax has been
// checked.
func (v *Vector) numbers(b []byte) error {
	list, is := bytes.CutPrefix(b, []byte("["))
	list, closed := bytes.CutSuffix(list, []byte("]"))
	if !is || !closed {
		return errors.New("a vector is an array of numbers, a sparse vector {i, v}, or text")
	}
	v.Dense = make([]float32, 0, bytes.Count(list, []byte(","))+1)
	if len(bytes.TrimSpace(list)) == 0 {
		return nil
	}
	for more := true; more; {
		var number []byte
		number, list, more = bytes.Cut(list, []byte(","))
		x, err := strconv.ParseFloat(string(bytes.TrimSpace(number)), 32)
		if err != nil {
			return fmt.Errorf("a vector has %.40q, where a number of float32 is expected", number)
		}
		v.Dense = append(v.Dense, float32(x))
	}
	return nil
}

// Args are the values of placeholders. A number without a point and an exponent is a whole number.
type Args []any

// UnmarshalJSON implements json.Unmarshaler.
func (a *Args) UnmarshalJSON(b []byte) error {
	// In memory they take ten times the room of the shortest JSON. Package db takes a mebibyte of values.
	if len(b) > maxArgs || bytes.Count(b, []byte(",")) > maxArgs/16 {
		return errors.New("too many args")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var values []any
	if err := d.Decode(&values); err != nil {
		return err
	}
	for i, v := range values {
		list, is := v.([]any)
		if !is {
			list = values[i : i+1]
		}
		for j, x := range list {
			if n, is := x.(json.Number); is {
				list[j] = number(n)
			}
		}
	}
	*a = values
	return nil
}

// maxArgs bounds the JSON of arguments, in bytes.
const maxArgs = 8 << 20

// number returns the Go value of a number: int64, uint64 or float64, the first that has it.
func number(n json.Number) any {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
		return u
	}
	x, _ := n.Float64() // a number beyond all is an infinity, with which nothing stored is equal
	return x
}

// strictly decodes JSON and refuses names that the value does not have.
func strictly(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(v)
}
