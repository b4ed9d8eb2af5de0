package metamorphic

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

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
	Vectors map[string]uint64 `json:"vectors,omitempty"` // number of the vector, by modality; see vectorOf
	Sparse  bool              `json:"sparse,omitempty"`  // give the vectors as sparse ones
	Code    *uint64           `json:"code,omitempty"`    // number of the code; see codeOf
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

// Shrink returns a program that fails, too, and is as short as it could find until the
// deadline. It is delta debugging: first over the operations, then over what is in
// them. fails reports whether a program fails; if that is a matter of luck, it should
// try several times.
func Shrink(p *Program, deadline time.Time, fails func(*Program) bool) *Program {
	s := &shrinker{best: p, deadline: deadline, fails: fails}
	for again := true; again; {
		before := s.best.String()
		s.options()
		s.operations()
		s.inside()
		again = s.best.String() != before && !s.late()
	}
	return s.best
}

// Upto returns the program up to the operation that failed.
func Upto(p *Program, err error) *Program {
	var f *Failure
	if errors.As(err, &f) && f.Op > 0 && f.Op < len(p.Ops) {
		return &Program{Options: p.Options, Ops: slices.Clone(p.Ops[:f.Op])}
	}
	return p
}

type shrinker struct {
	best     *Program
	deadline time.Time
	fails    func(*Program) bool
}

func (s *shrinker) late() bool { return time.Now().After(s.deadline) }

// try takes a program as the best one if it fails.
func (s *shrinker) try(p *Program) bool {
	if s.late() || !s.fails(p) {
		return false
	}
	s.best = p
	return true
}

func (s *shrinker) options() {
	for _, simpler := range []func(*Options){
		func(o *Options) { *o = Options{Disk: o.Disk} },
		func(o *Options) { o.NoSync = false },
		func(o *Options) { o.CacheBytes = 0 },
		func(o *Options) { o.IndexCacheBytes = 0 },
		func(o *Options) { o.RerankCacheBytes = 0 },
		func(o *Options) { o.KeyCacheBytes = 0 },
		func(o *Options) { o.UpdateItems = 0 },
		func(o *Options) { o.ReadOnly = false },
	} {
		o := s.best.Options
		if simpler(&o); o != s.best.Options {
			s.try(&Program{Options: o, Ops: s.best.Ops})
		}
	}
}

func (s *shrinker) operations() {
	s.list(s.best.Ops, func(ops []Op) *Program { return &Program{Options: s.best.Options, Ops: ops} })
}

// list removes parts of a list of operations, in smaller and smaller steps. with
// returns the program with the list in its place.
func (s *shrinker) list(ops []Op, with func([]Op) *Program) []Op {
	for size := len(ops); size > 0; size /= 2 {
		for from := 0; from < len(ops) && !s.late(); {
			less := slices.Delete(slices.Clone(ops), from, min(from+size, len(ops)))
			if s.try(with(less)) {
				ops = less
			} else {
				from += size
			}
		}
	}
	return ops
}

// inside makes single operations smaller.
func (s *shrinker) inside() {
	for i := range s.best.Ops {
		if s.late() {
			return
		}
		with := func(op Op) *Program {
			p := &Program{Options: s.best.Options, Ops: slices.Clone(s.best.Ops)}
			p.Ops[i] = op
			return p
		}
		for j := range s.best.Ops[i].Lanes {
			s.list(s.best.Ops[i].Lanes[j], func(lane []Op) *Program {
				op := s.best.Ops[i]
				op.Lanes = slices.Clone(op.Lanes)
				op.Lanes[j] = lane
				return with(op)
			})
		}
		s.list(s.best.Ops[i].Ops, func(ops []Op) *Program {
			op := s.best.Ops[i]
			op.Ops = ops
			return with(op)
		})
		s.simpler(func() Op { return s.best.Ops[i] }, with)
		for j := range s.best.Ops[i].Ops {
			s.simpler(func() Op { return s.best.Ops[i].Ops[j] }, func(change Op) *Program {
				op := s.best.Ops[i]
				op.Ops = slices.Clone(op.Ops)
				op.Ops[j] = change
				return with(op)
			})
		}
	}
}

// simpler leaves out what an operation does not need.
func (s *shrinker) simpler(now func() Op, with func(Op) *Program) {
	item := func(op *Op, change func(*Item)) {
		if op.Item != nil {
			it := *op.Item
			change(&it)
			op.Item = &it
		}
	}
	query := func(op *Op, change func(*Query)) {
		if op.Query != nil {
			q := *op.Query
			change(&q)
			op.Query = &q
		}
	}
	for _, change := range []func(*Op){
		func(op *Op) { op.At = "" },
		func(op *Op) { op.Where = nil },
		func(op *Op) { op.Options = nil },
		func(op *Op) { op.IndexOnly = false },
		func(op *Op) { op.Damage = "" },
		func(op *Op) { op.Crash = false },
		func(op *Op) {
			if op.Do == "alter" {
				op.Schema = &Schema{Modalities: op.Schema.Modalities}
			}
		},
		func(op *Op) {
			if op.Do == "alter" {
				op.Schema = &Schema{Fields: op.Schema.Fields}
			}
		},
		func(op *Op) {
			if op.Do == "alter" {
				op.Schema = &Schema{Index: op.Schema.Index, Words: op.Schema.Words}
			}
		},
		func(op *Op) {
			if op.Do == "alter" {
				op.Schema = &Schema{SpaceOf: op.Schema.SpaceOf, Metrics: op.Schema.Metrics}
			}
		},
		func(op *Op) {
			if op.Do == "backup" || op.Do == "checkpoint" {
				op.In = ""
			}
		},
		func(op *Op) { op.Keys = op.Keys[:min(1, len(op.Keys))] },
		func(op *Op) { op.Queries = op.Queries[:min(1, len(op.Queries))] },
		func(op *Op) { op.N = min(op.N, 1) },
		func(op *Op) { item(op, func(it *Item) { it.Fields = nil }) },
		func(op *Op) { item(op, func(it *Item) { it.Labels, it.Unlabel = nil, false }) },
		func(op *Op) { item(op, func(it *Item) { it.Labels = it.Labels[:min(1, len(it.Labels))] }) },
		func(op *Op) { item(op, func(it *Item) { it.Vectors, it.Sparse = nil, false }) },
		func(op *Op) { item(op, func(it *Item) { it.Sparse = false }) },
		func(op *Op) { item(op, func(it *Item) { it.Payload, it.Unload = "", false }) },
		func(op *Op) { query(op, func(q *Query) { q.Where = nil }) },
		func(op *Op) { query(op, func(q *Query) { q.Plan = "" }) },
		func(op *Op) { query(op, func(q *Query) { q.Least = 0 }) },
		func(op *Op) { query(op, func(q *Query) { q.Rerank = "" }) },
		func(op *Op) { query(op, func(q *Query) { q.Space = "" }) },
		func(op *Op) { query(op, func(q *Query) { q.Recall = 0 }) },
		func(op *Op) { query(op, func(q *Query) { q.Sparse = false }) },
		func(op *Op) { query(op, func(q *Query) { q.Exclude = false }) },
		func(op *Op) {
			if op.Index != nil {
				op.Index = &Index{Modality: op.Index.Modality}
			}
		},
		func(op *Op) {
			if op.Train != nil {
				op.Train = &Training{Bits: op.Train.Bits, Anchors: op.Train.Anchors, Free: op.Train.Free}
			}
		},
	} {
		op := now()
		change(&op)
		if p := with(op); p.String() != s.best.String() {
			s.try(p)
		}
	}
}

// Programs have numbers in place of vectors and codes, so that a person can read them.
// The functions here make the values.

const classes = 4 // vectors are drawn from so many classes

// farAway is the number of a vector that is far from all others. 0 is the number of the
// zero vector.
const farAway = 1 << 20

// vectorOf returns the vector with a number. It is near the vectors of its class, which
// is the number mod classes.
func vectorOf(m db.Modality, number uint64) []float32 {
	x := make([]float32, m.Dim)
	if number == 0 {
		return x
	}
	if number == farAway {
		x[0] = 1e9
		return x
	}
	centre := rand.New(rand.NewPCG(number%classes, uint64(m.Dim)))
	noise := rand.New(rand.NewPCG(number, uint64(m.Dim)+1))
	for j := range x {
		c, n := centre.NormFloat64(), noise.NormFloat64()
		if m.Sparse && (centre.IntN(4) != 0 && noise.IntN(8) != 0) {
			continue
		}
		x[j] = float32(2*c + n)
	}
	return x
}

// sparseOf returns a dense vector in sparse form.
func sparseOf(x []float32) db.Sparse {
	s := db.Sparse{Index: []uint32{}, Value: []float32{}}
	for j, v := range x {
		if v != 0 {
			s.Index, s.Value = append(s.Index, uint32(j)), append(s.Value, v)
		}
	}
	return s
}

// codeOf returns the code with a number. The first 2^16 codes are near each other, with
// their bits spread over the code; others are random.
func codeOf(bits int, number uint64) []byte {
	b := make([]byte, bits/8)
	if number >= 1<<16 {
		r := rand.New(rand.NewPCG(number, 3))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	for j := range 16 {
		b[j*len(b)/16] ^= byte(number>>j&1) << (j % 8)
	}
	return b
}

// fields are the fields of all collections.
var fields = []db.Field{
	{Name: "note", Type: db.String},
	{Name: "n", Type: db.Int, Indexed: true},
	{Name: "x", Type: db.Float, Indexed: true},
	{Name: "s", Type: db.String, Indexed: true, Words: true},
	{Name: "b", Type: db.Bool, Indexed: true},
}

// These modalities and fields may be added to collections.
var (
	moreModalities = []db.Modality{{Name: "depth", Dim: 3}, {Name: "bag", Dim: 30, Sparse: true},
		{Name: "sound", Dim: 3}}
	moreFields = []db.Field{
		{Name: "m", Type: db.Int, Indexed: true},
		{Name: "y", Type: db.Float, Indexed: true},
		{Name: "place", Type: db.String, Indexed: true},
		{Name: "seen", Type: db.Bool, Indexed: true},
		{Name: "memo", Type: db.String, Words: true},
		{Name: "at", Type: db.Time, Indexed: true},
	}
)

// longest stands for the longest string that an indexed field may hold.
const longest = "<longest>"

// literal returns the string that a text stands for.
func literal(text string) string {
	if text == longest {
		return strings.Repeat("z", db.MaxIndexedBytes)
	}
	return text
}

// typeOf returns the type of a field. It is the same in all collections with the field.
func typeOf(field string) db.FieldType {
	for _, f := range slices.Concat(fields, moreFields) {
		if f.Name == field {
			return f.Type
		}
	}
	return ""
}

// valueOf returns the value of a field that is written as text, or nil if that is no
// such value.
func valueOf(field, text string) any {
	switch typeOf(field) {
	case db.String:
		return literal(text)
	case db.Int:
		if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			return v
		}
	case db.Float:
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			return v
		}
	case db.Bool:
		return text == "true"
	case db.Time:
		if v, err := time.Parse(time.RFC3339, text); err == nil {
			return v
		}
	}
	return nil
}

// Items hold these values and expressions ask for them, so that they meet.
var (
	someLabels = []string{"a", "b", "c", "it's"}
	newLabels  = []string{"new", "ä ö"}
	someInts   = []string{"-9223372036854775808", "-300", "-1", "0", "1", "2", "255", "256",
		"9007199254740993", "9223372036854775807"}
	someFloats  = []string{"-1.7976931348623157e308", "-1.5", "-5e-324", "0", "5e-324", ".1", "1.5", "1e300"}
	someStrings = []string{"", "a", "a\x00", "aa", "it's", "two\nlines", "a note", "ä", longest}

	someTimes = []string{"0000-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00Z",
		"2024-05-01T12:30:00Z"}

	someOf = map[db.FieldType][]string{db.Int: someInts, db.Float: someFloats, db.String: someStrings,
		db.Bool: {"true", "false"}, db.Time: someTimes}
)

// A memory is a file system that can be cloned, while it is in use, as a crash would
// leave it. Pebble's Lock takes a lock that it already holds; this hangs if a clone
// waits for that lock in between. So memory has a lock of its own around it.
type memory struct {
	vfs.FS
	files   *vfs.MemFS
	locking sync.RWMutex // held for reading while Lock runs, for writing while a clone is made
}

func newMemory() *memory { return memoryOf(vfs.NewCrashableMem()) }

func memoryOf(files *vfs.MemFS) *memory {
	return &memory{FS: files, files: files}
}

func (m *memory) Lock(name string) (io.Closer, error) {
	m.locking.RLock()
	defer m.locking.RUnlock()
	return m.FS.Lock(name)
}

// crash returns what a crash would leave now.
func (m *memory) crash(op *Op) *memory {
	m.locking.Lock()
	defer m.locking.Unlock()
	return memoryOf(m.files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: op.Percent,
		RNG: newRand(op.Seed)}))
}
