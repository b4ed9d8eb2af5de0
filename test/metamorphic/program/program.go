// Package program is the language of histories: what to do with a database, as values and as JSON.
//
// Read and WriteTo read and write a program, a line for the options and for each operation. Numbers stand for
// vectors and codes, so that a person can read it; values.go makes them. Shrink makes a program that fails
// shorter.
//
// Invariant: a program alone decides what a history does. This package knows no database.
package program

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/fddhdb/fddhdb/db"
)

// A Program is a history to run.
type Program struct {
	Options Options
	Ops     []Op
}

// Options are the options of the database that programs vary.
type Options struct {
	Disk            bool  `json:"disk,omitempty"` // in a folder of the operating system; otherwise in memory
	NoSync          bool  `json:"no_sync,omitempty"`
	CacheBytes      int64 `json:"cache_bytes,omitempty"`
	IndexCacheBytes int64 `json:"index_cache_bytes,omitempty"`

	RerankCacheBytes int64 `json:"rerank_cache_bytes,omitempty"`
	KeyCacheBytes    int64 `json:"key_cache_bytes,omitempty"`
	UpdateItems      int   `json:"update_items,omitempty"`
	ReadOnly         bool  `json:"read_only,omitempty"`
}

// An Op is one operation. Do names its kind, which decides which other fields matter.
type Op struct {
	Do string `json:"do"`
	In string `json:"in,omitempty"` // name of the collection
	At string `json:"at,omitempty"` // snapshot to read; the present state if empty
	// name of what the operation makes, for later operations; or of what it works on
	Name string   `json:"name,omitempty"`
	Key  string   `json:"key,omitempty"`
	Keys []string `json:"keys,omitempty"`
	Item *Item    `json:"item,omitempty"`
	// for putif and expect: the item must not exist; otherwise it must be as it is
	Absent  bool    `json:"absent,omitempty"`
	Ops     []Op    `json:"ops,omitempty"`   // for a batch
	Lanes   [][]Op  `json:"lanes,omitempty"` // for together: each runs in a goroutine
	Crash   bool    `json:"crash,omitempty"` // for together: check what a crash after N writes would leave
	Schema  *Schema `json:"schema,omitempty"`
	Where   *Expr   `json:"where,omitempty"`
	Query   *Query  `json:"query,omitempty"`
	Queries []Query `json:"queries,omitempty"`
	Radius  int     `json:"radius,omitempty"`
	// named by the operation that made it; the active space if empty
	Space   string    `json:"space,omitempty"`
	Train   *Training `json:"train,omitempty"`
	Teacher string    `json:"teacher,omitempty"`
	Grow    bool      `json:"grow,omitempty"` // give labels codes, too
	Back    int       `json:"back,omitempty"` // revisions before the present one
	Pinned  bool      `json:"pinned,omitempty"`
	// for update: it is stopped when it tells of its progress for the Nth time
	N       int      `json:"n,omitempty"`
	Seed    uint64   `json:"seed,omitempty"`
	Percent int      `json:"percent,omitempty"` // share of unsynced data that survives a crash
	Options *Options `json:"options,omitempty"` // to open the database with
	Index   *Index   `json:"index,omitempty"`   // for indexvectors, and the modality for dropindex

	IndexOnly bool `json:"index_only,omitempty"` // for backup and checkpoint: leave vectors out
	// for restore: the present database becomes a copy with this name
	Keep   string `json:"keep,omitempty"`
	Damage string `json:"damage,omitempty"` // for repair: see damages
}

// An Item is an item to put or merge.
type Item struct {
	Vectors map[string]uint64 `json:"vectors,omitempty"` // number of the vector, by modality; see VectorOf
	Sparse  bool              `json:"sparse,omitempty"`  // give the vectors as sparse ones
	Code    *uint64           `json:"code,omitempty"`    // number of the code; see CodeOf
	Labels  []string          `json:"labels,omitempty"`
	Unlabel bool              `json:"unlabel,omitempty"` // the labels are empty, not nil
	Fields  map[string]string `json:"fields,omitempty"`  // as in expressions, but strings without quotes
	Payload string            `json:"payload,omitempty"`
	Unload  bool              `json:"unload,omitempty"` // the payload is empty, not nil
	// what is wrong with the item: vector (or code), field, label, modality or name
	Bad string `json:"bad,omitempty"`
}

// A Schema describes a collection; for alter, what is added to it.
type Schema struct {
	Bits       int           `json:"bits,omitempty"`
	Modalities []db.Modality `json:"modalities,omitempty"`
	Fields     []db.Field    `json:"fields,omitempty"` // besides the fields of all collections

	// fields that alter indexes; of a collection all that it has indexed
	Index []string `json:"index,omitempty"`
	Words []string `json:"words,omitempty"` // likewise, with words
	// for alter: of modalities that are there, or added
	SpaceOf map[string]string    `json:"space_of,omitempty"`
	Metrics map[string]db.Metric `json:"metrics,omitempty"` // likewise
}

// A Training has the options of a training.
type Training struct {
	Bits     int    `json:"bits"`
	Anchors  int    `json:"anchors,omitempty"`
	Seed     uint64 `json:"seed,omitempty"`
	Joint    bool   `json:"joint,omitempty"`
	Linear   bool   `json:"linear,omitempty"`
	Free     bool   `json:"label_free,omitempty"` // without labels
	Choose   bool   `json:"choose,omitempty"`     // the training measures which fusion is best
	Rows     int    `json:"rows,omitempty"`
	Activate bool   `json:"activate,omitempty"`
	Cancel   int    `json:"cancel,omitempty"` // the context ends at this call of Progress; 0: never
}

// An Index has the options of an index of vectors.
type Index struct {
	Modality string  `json:"modality,omitempty"`
	Recall   float64 `json:"recall,omitempty"`
	Cells    int     `json:"cells,omitempty"`
	Seed     uint64  `json:"seed,omitempty"`
	Cancel   int     `json:"cancel,omitempty"` // as of a Training
}

// A Query starts from a vector, a key or a code.
type Query struct {
	From    string  `json:"from,omitempty"`
	To      string  `json:"to,omitempty"`
	Vector  *uint64 `json:"vector,omitempty"`
	Sparse  bool    `json:"sparse,omitempty"`
	Key     string  `json:"key,omitempty"`
	Exclude bool    `json:"exclude,omitempty"` // leave out the item with the key
	Code    *uint64 `json:"code,omitempty"`
	Space   string  `json:"space,omitempty"`
	Where   *Expr   `json:"where,omitempty"`
	K       int     `json:"k,omitempty"`
	Rerank  string  `json:"rerank,omitempty"`
	Plan    string  `json:"plan,omitempty"`
	Least   float32 `json:"least,omitempty"` // least similarity, of answers by vectors alone
	Recall  float64 `json:"recall,omitempty"`
}

// header is the first line of a program.
type header struct {
	Options *Options `json:"options"`
}

// WriteTo writes the text of the program.
func (p *Program) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(header{&p.Options}); err != nil {
		return 0, err
	}
	for i := range p.Ops {
		if err := enc.Encode(&p.Ops[i]); err != nil {
			return 0, err
		}
	}
	return b.WriteTo(w)
}

func (p *Program) String() string {
	var b bytes.Buffer
	if _, err := p.WriteTo(&b); err != nil {
		return err.Error()
	}
	return b.String()
}

// Read reads the text of a program.
func Read(r io.Reader) (*Program, error) {
	p := &Program{}
	line := 0
	decode := func(b []byte, into any) error {
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		return nil
	}
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<26)
	for s.Scan() {
		line++
		if len(bytes.TrimSpace(s.Bytes())) == 0 {
			continue
		}
		if line == 1 {
			var h header
			if err := decode(s.Bytes(), &h); err != nil {
				return nil, err
			}
			if h.Options == nil {
				return nil, fmt.Errorf("line 1: the options come first")
			}
			p.Options = *h.Options
			continue
		}
		var op Op
		if err := decode(s.Bytes(), &op); err != nil {
			return nil, err
		}
		p.Ops = append(p.Ops, op)
	}
	return p, s.Err()
}

func (s *Schema) Has(modality string) bool {
	return slices.ContainsFunc(s.Modalities, func(m db.Modality) bool { return m.Name == modality })
}

// AllFields returns the fields that items may have.
func (s *Schema) AllFields() []db.Field {
	all := slices.Concat(fields, s.Fields)
	for i := range all {
		all[i].Indexed = all[i].Indexed || slices.Contains(s.Index, all[i].Name)
		all[i].Words = all[i].Words || slices.Contains(s.Words, all[i].Name)
	}
	return all
}

func (s *Schema) HasField(name string) bool {
	return slices.ContainsFunc(s.AllFields(), func(f db.Field) bool { return f.Name == name })
}
