package metamorphic

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/fddhdb/fddhdb/db"
)

// A Program is a history to be carried out.
type Program struct {
	Options Options
	Ops     []Op
}

// Options are those of the database, as far as they are varied.
type Options struct {
	Disk            bool  `json:"disk,omitempty"` // a folder of the operating system, else one in memory
	NoSync          bool  `json:"no_sync,omitempty"`
	CacheBytes      int64 `json:"cache_bytes,omitempty"`
	IndexCacheBytes int64 `json:"index_cache_bytes,omitempty"`
	KeyCacheBytes   int64 `json:"key_cache_bytes,omitempty"`
	UpdateItems     int   `json:"update_items,omitempty"`
	ReadOnly        bool  `json:"read_only,omitempty"`
}

// An Op is one operation. Do says which, and with that which other fields matter.
type Op struct {
	Do      string    `json:"do"`
	In      string    `json:"in,omitempty"`   // collection
	At      string    `json:"at,omitempty"`   // snapshot that is read; the present state where empty
	Name    string    `json:"name,omitempty"` // that later operations know by what this one makes, or the one that is meant
	Key     string    `json:"key,omitempty"`
	Keys    []string  `json:"keys,omitempty"`
	Item    *Item     `json:"item,omitempty"`
	Absent  bool      `json:"absent,omitempty"` // of putif and expect: there is to be no such item, else it is to be as it is
	Ops     []Op      `json:"ops,omitempty"`    // of a batch or an import
	Lanes   [][]Op    `json:"lanes,omitempty"`  // of together: each a goroutine
	Crash   bool      `json:"crash,omitempty"`  // of together: look at what a crash after N writes would leave; of importcommit: go on with what one before change N of files leaves
	Schema  *Schema   `json:"schema,omitempty"`
	Where   *Expr     `json:"where,omitempty"`
	Query   *Query    `json:"query,omitempty"`
	Queries []Query   `json:"queries,omitempty"`
	Radius  int       `json:"radius,omitempty"`
	Space   string    `json:"space,omitempty"` // by the operation that made it; the active one where empty
	Train   *Training `json:"train,omitempty"`
	Teacher string    `json:"teacher,omitempty"`
	Grow    bool      `json:"grow,omitempty"` // labels
	Back    int       `json:"back,omitempty"` // revisions before the present one
	Pinned  bool      `json:"pinned,omitempty"`
	N       int       `json:"n,omitempty"`
	Seed    uint64    `json:"seed,omitempty"`
	Percent int       `json:"percent,omitempty"` // of what is not synced that survives a crash
	Options *Options  `json:"options,omitempty"` // to open with
	Import  *Import   `json:"import,omitempty"`

	IndexOnly bool   `json:"index_only,omitempty"` // of backup and checkpoint: without vectors
	Keep      string `json:"keep,omitempty"`       // of restore: the name of the copy that the present database becomes
	Damage    string `json:"damage,omitempty"`     // of repair; see damages
}

// An Item is what is put or merged.
type Item struct {
	Vectors map[string]uint64 `json:"vectors,omitempty"` // number of the vector by modality; see vectorOf
	Sparse  bool              `json:"sparse,omitempty"`  // give vectors as sparse ones
	Code    *uint64           `json:"code,omitempty"`    // number of the code; see codeOf
	Labels  []string          `json:"labels,omitempty"`
	Unlabel bool              `json:"unlabel,omitempty"` // labels that are empty and not nil
	Fields  map[string]string `json:"fields,omitempty"`  // as they are written in expressions, strings without quotes
	Payload string            `json:"payload,omitempty"`
	Unload  bool              `json:"unload,omitempty"` // a payload that is empty and not nil
	Bad     string            `json:"bad,omitempty"`    // what is wrong with it: vector (or code), field, label, modality or name
}

// A Schema is that of a collection, or of alter what is to be added to it.
type Schema struct {
	Bits       int           `json:"bits,omitempty"`
	Modalities []db.Modality `json:"modalities,omitempty"`
	Fields     []db.Field    `json:"fields,omitempty"` // besides those that all collections have
}

// An Import says how to import.
type Import struct {
	Restart bool `json:"restart,omitempty"`
	InParts bool `json:"in_parts,omitempty"`
	Cancel  bool `json:"cancel,omitempty"` // commit with a context that has ended first
}

// A Training is how to train.
type Training struct {
	Bits     int    `json:"bits"`
	Anchors  int    `json:"anchors,omitempty"`
	Seed     uint64 `json:"seed,omitempty"`
	Targets  bool   `json:"targets,omitempty"` // codes for each target modality
	Joint    bool   `json:"joint,omitempty"`
	Linear   bool   `json:"linear,omitempty"`
	Choose   bool   `json:"choose,omitempty"` // let the fusion be measured
	Rows     int    `json:"rows,omitempty"`
	Activate bool   `json:"activate,omitempty"`
	Cancel   int    `json:"cancel,omitempty"` // the context ends at this call of Progress
}

// A Query starts from a vector, a key or a code.
type Query struct {
	From    string  `json:"from,omitempty"`
	To      string  `json:"to,omitempty"`
	Vector  *uint64 `json:"vector,omitempty"`
	Sparse  bool    `json:"sparse,omitempty"`
	Key     string  `json:"key,omitempty"`
	Exclude bool    `json:"exclude,omitempty"` // the item of the key
	Code    *uint64 `json:"code,omitempty"`
	Space   string  `json:"space,omitempty"`
	Where   *Expr   `json:"where,omitempty"`
	K       int     `json:"k,omitempty"`
	Rerank  string  `json:"rerank,omitempty"`
	Window  int     `json:"window,omitempty"`
	Plan    string  `json:"plan,omitempty"`
}

// header is the first line of a program.
type header struct {
	Options *Options `json:"options"`
}

// WriteTo writes the program as text.
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

// Read reads a program from its text.
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
