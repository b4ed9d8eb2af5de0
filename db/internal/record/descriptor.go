package record

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/model"
)

// A Descriptor is the schema of a collection as it is stored, in JSON: under
// codec.KindCollection, and as a copy in the descriptor of each space (spaces.Reported), for a
// repair that finds the first one lost. Records name modalities and fields by their position
// here, so positions never change: both lists only grow. Once a collection has a descriptor
// nothing writes to it: an alteration makes another one, and views keep theirs.
type Descriptor struct {
	// in the keys of all records of the collection; never used again
	ID uint32 `json:"id"`
	// unique in the database, see CheckName; never changes
	Name string `json:"name"`
	// of the codes that items bring; 0: codes are learned from vectors
	Bits       int        `json:"bits,omitempty"`
	Modalities []Modality `json:"modalities,omitempty"` // none if Bits is given, else at least one
	// names are unique among modalities and fields together
	Fields []Field `json:"fields,omitempty"`
	// names the function that makes the codes that items bring; "": unknown. Nothing here calls it.
	Hash string `json:"hash,omitempty"`
	// vectors were left out when the database was copied; see WithoutVectors
	IndexOnly bool `json:"index_only,omitempty"`
	// how many indexes of vectors there have been; the last one has this number
	Indexes uint32 `json:"indexes,omitempty"`
	// by modality, in the order of Modalities, and input; see WithEncoders
	Encoders []Encoder `json:"encoders,omitempty"`
}

// CodesOnly reports whether items bring their codes and have no vectors.
func (d *Descriptor) CodesOnly() bool { return d.Bits != 0 }

// ModalityOf returns the position of the modality with a name. An unknown name is an ErrInvalid that lists
// the modalities.
func (d *Descriptor) ModalityOf(name string) (int, error) {
	for i, m := range d.Modalities {
		if m.Name == name {
			return i, nil
		}
	}
	if d.CodesOnly() {
		return 0, fault.Invalid("modality %q: the items of collection %q bring codes, they have no modalities", Shortened(name), d.Name)
	}
	return 0, fault.Invalid("unknown modality %q: collection %q has %s", Shortened(name), d.Name,
		Names(d.Modalities))
}

// FieldOf returns the position of the field with a name, which is its codec.Field.ID. An unknown name is an
// ErrInvalid that lists the fields.
func (d *Descriptor) FieldOf(name string) (int, error) {
	for i, f := range d.Fields {
		if f.Name == name {
			return i, nil
		}
	}
	if len(d.Fields) == 0 {
		return 0, fault.Invalid("unknown field %q: collection %q has no fields", Shortened(name), d.Name)
	}
	return 0, fault.Invalid("unknown field %q: collection %q has %s", Shortened(name), d.Name,
		Names(d.Fields))
}

// Names lists the names of modalities or fields for the text of an error.
func Names[T Modality | Field](list []T) string {
	s := ""
	for i, x := range list {
		if i > 0 {
			s += ", "
		}
		switch x := any(x).(type) {
		case Modality:
			s += x.Name
		case Field:
			s += x.Name
		}
	}
	return s
}

// Encode returns the descriptor in the form in which DecodeDescriptor reads it.
func (d *Descriptor) Encode() ([]byte, error) { return json.Marshal(d) }

// Check returns an ErrInvalid if there can be no collection with this schema: limits, names that clash, both
// vectors and codes or neither. CheckName checks Name, and Settle metrics and spaces.
func (d *Descriptor) Check() error {
	switch {
	case d.Bits != 0 && d.IndexOnly:
		return fault.Invalid("an index-only collection has modalities, not codes of its own")
	case d.Bits != 0 && len(d.Modalities) > 0:
		return fault.Invalid("a collection has modalities or brings codes of its own, not both")
	case d.Bits == 0 && len(d.Modalities) == 0:
		return fault.Invalid("a collection needs a modality, or the number of bits of the codes that its items bring")
	case len(d.Modalities) > MaxModalities:
		return fault.Invalid("%d modalities, at most %d are possible", len(d.Modalities), MaxModalities)
	case len(d.Fields) > MaxFields:
		return fault.Invalid("%d fields, at most %d are possible", len(d.Fields), MaxFields)
	}
	if d.Bits != 0 {
		if err := codec.CheckBits(d.Bits); err != nil {
			return fault.Invalid("%w", err)
		}
	}
	if d.Hash != "" {
		if d.Bits == 0 {
			return fault.Invalid("hash %q: a collection with modalities learns its codes", Shortened(d.Hash))
		}
		if err := CheckName("hash", d.Hash); err != nil {
			return err
		}
	}
	seen := map[string]string{}
	once := func(what, name string) error {
		if err := CheckName(what, name); err != nil {
			return err
		}
		if other, ok := seen[name]; ok {
			return fault.Invalid("%s %q: there is a %s of that name already", what, name, other)
		}
		seen[name] = what
		return nil
	}
	for _, m := range d.Modalities {
		if err := once("modality", m.Name); err != nil {
			return err
		}
		if m.Dim < 1 || m.Dim > MaxDim {
			return fault.Invalid("modality %q: %d dimensions, possible are 1 to %d", m.Name, m.Dim, MaxDim)
		}
	}
	for _, f := range d.Fields {
		if err := once("field", f.Name); err != nil {
			return err
		}
		switch f.Type {
		case String, Int, Float, Bool, Time:
		default:
			return fault.Invalid("field %q: unknown type %q: string, int, float, bool and time are possible",
				f.Name, Shortened(string(f.Type)))
		}
		if err := f.checkWords(); err != nil {
			return err
		}
	}
	return d.checkEncoders()
}

// CheckName checks the name of a collection, modality or field; what is that noun, for the error. It admits
// letters, digits, '_', '-' and '.', so that names can stand unquoted in expressions and in flags such as
// NAME=FILE.
func CheckName(what, name string) error {
	if name == "" || len(name) > MaxNameBytes || !utf8.ValidString(name) {
		return fault.Invalid("%s name %q: 1 to %d bytes of UTF-8 are possible", what, Shortened(name),
			MaxNameBytes)
	}
	for i, r := range name {
		if unicode.IsLetter(r) || r == '_' || (i > 0 && (unicode.IsDigit(r) || r == '-' || r == '.')) {
			continue
		}
		return fault.Invalid("%s name %q: letters, digits, '_', '-' and '.' are possible, a letter or '_' first", what, name)
	}
	return nil
}

// DecodeDescriptor reads and checks a stored descriptor. Its errors are for the caller to word, as damage of
// the record that held b.
func DecodeDescriptor(b []byte) (*Descriptor, error) {
	d := new(Descriptor)
	if err := json.Unmarshal(b, d); err != nil {
		return nil, err
	}
	if err := d.Check(); err != nil {
		return nil, err
	}
	settled := *d
	if err := settled.Settle(); err != nil {
		return nil, err
	}
	if !slices.Equal(settled.Modalities, d.Modalities) {
		return nil, errors.New("metrics or spaces of modalities that no schema is stored with")
	}
	return d, CheckName("collection", d.Name)
}

// An index-only collection is a copy of a learned one. It has all records that searches, filters and Get
// need. It lacks the vectors of its items, and the records that only learning needs: statistics, lessons,
// pending rows. It cannot be written to, because a write would need the vectors; its spaces can be activated
// and dropped.

// WithoutVectors returns the descriptor of the collection in an index-only copy of the database: d itself if
// items bring codes, because there are no vectors to leave out.
func (d *Descriptor) WithoutVectors() *Descriptor {
	if d.CodesOnly() {
		return d
	}
	only := *d
	only.IndexOnly, only.Indexes = true, 0
	return &only
}

// WithIndex returns the descriptor of the collection when it has one more index of vectors, with the
// number Indexes.
func (d *Descriptor) WithIndex() *Descriptor {
	with := *d
	with.Indexes++
	return &with
}

// Changeable returns an ErrReadOnly if the collection is index-only: without vectors its items cannot change,
// nor its learned codes. Spaces can be activated and dropped all the same.
func (d *Descriptor) Changeable() error {
	if !d.IndexOnly {
		return nil
	}
	return fmt.Errorf("%w: collection %q is index-only, a copy without the vectors that this takes: write to the database that it is a copy of, or restore a full backup",
		fault.ErrReadOnly, d.Name)
}

// LacksVectors returns the error of a call that wants vectors of items from an index-only collection. what is
// the purpose, for the text.
func (d *Descriptor) LacksVectors(what string) error {
	return fault.Invalid("collection %q is index-only: its items have no vectors %s", d.Name, what)
}

// Match returns for each modality of a model its position in the collection. They match by
// name, and have to have the same dimensions and form. The caller words the error: it is about
// a stored model that is damaged, or about one that a user has brought.
func (d *Descriptor) Match(m *model.Model) ([]int, error) { return d.MatchAll(m.Modalities()) }

// MatchAll is Match of the modalities of a model.
func (d *Descriptor) MatchAll(modalities []model.Modality) ([]int, error) {
	var positions []int
	for _, mod := range modalities {
		t, err := d.ModalityOf(mod.Name)
		if err != nil {
			return nil, fmt.Errorf("the model has a modality %q", mod.Name)
		}
		if d.Modalities[t].Dim != mod.Dim {
			return nil, fmt.Errorf("modality %q of the model has %d dimensions", mod.Name, mod.Dim)
		}
		if d.Modalities[t].Sparse != mod.Sparse {
			return nil, fmt.Errorf("modality %q of the model is sparse: %v", mod.Name, mod.Sparse)
		}
		positions = append(positions, t)
	}
	return positions, nil
}

// With returns the descriptor of the collection after an alteration: with more modalities and fields, and
// other spaces and metrics. Additions come last, because positions never change. It refuses an index-only
// collection and names in use.
func (d *Descriptor) With(modalities []Modality, fields []Field, change Respacing) (*Descriptor, error) {
	switch {
	case d.IndexOnly:
		return nil, d.unalterable()
	case len(modalities)+len(fields)+len(change.SpaceOf)+len(change.Metrics) == 0:
		return nil, fault.Invalid(
			"alter collection %q: neither modalities nor fields are given to add, nor fields to index, nor metrics or spaces to change", d.Name)
	case d.CodesOnly() && len(modalities) > 0:
		return nil, fault.Invalid(
			"modality %q: the items of collection %q bring codes: fields can be added, modalities cannot",
			Shortened(modalities[0].Name), d.Name)
	}
	for _, m := range modalities {
		if err := d.unused("modality", m.Name); err != nil {
			return nil, err
		}
	}
	for _, f := range fields {
		if err := d.unused("field", f.Name); err != nil {
			return nil, err
		}
	}
	out := *d
	out.Modalities = slices.Concat(d.Modalities, modalities)
	out.Fields = slices.Concat(d.Fields, fields)
	if err := out.Check(); err != nil {
		return nil, err
	}
	return &out, out.settle(len(d.Modalities), change)
}

// A FieldIndex names an index of a field: of its values, or of its words.
type FieldIndex struct {
	Field string
	Words bool
}

// An IndexState says whether there is an index of a field.
type IndexState byte

// The states of an index of a field.
const (
	NotIndexed IndexState = iota
	Indexing
	Indexed
)

// WithFields returns the descriptor of the collection when the indexes exist, are being made, or are not
// there. A field that is not there, and words of a field that is not of strings, are an ErrInvalid.
func (d *Descriptor) WithFields(indexes []FieldIndex, to IndexState) (*Descriptor, error) {
	if d.IndexOnly {
		return nil, d.unalterable()
	}
	out := *d
	out.Fields = slices.Clone(d.Fields)
	for _, x := range indexes {
		i, err := d.FieldOf(x.Field)
		if err != nil {
			return nil, err
		}
		f := &out.Fields[i]
		if !x.Words {
			f.Indexed, f.Indexing = to == Indexed, to == Indexing
			continue
		}
		f.Words, f.IndexingWords = to == Indexed, to == Indexing
		if err := f.checkWords(); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

// unalterable returns the error of altering an index-only collection.
func (d *Descriptor) unalterable() error {
	return fmt.Errorf("%w: collection %q is index-only, a copy that stays as it is: alter the database that it is a copy of",
		fault.ErrReadOnly, d.Name)
}

// unused refuses a name that a modality or a field of the collection has.
func (d *Descriptor) unused(what, name string) error {
	for _, m := range d.Modalities {
		if m.Name == name {
			return fmt.Errorf("%w: %s %q: collection %q has a modality of that name, of dimension %d, which stays as it is",
				fault.ErrExists, what, name, d.Name, m.Dim)
		}
	}
	for _, f := range d.Fields {
		if f.Name == name {
			return fmt.Errorf("%w: %s %q: collection %q has a field of that name, of type %s, which stays as it is",
				fault.ErrExists, what, name, d.Name, f.Type)
		}
	}
	return nil
}

// Lacks returns an error, an ErrExists, that says what the collection has not, or otherwise
// than, wanted, which is settled; nil if nothing. It may have more.
func (d *Descriptor) Lacks(wanted *Descriptor) error {
	differs := func(format string, args ...any) error {
		return fmt.Errorf("%w: collection %q, %s", fault.ErrExists, d.Name, fmt.Sprintf(format, args...))
	}
	if wanted.Bits != d.Bits {
		return differs("whose items bring codes of %d bits, not %d (0: they bring vectors)", d.Bits,
			wanted.Bits)
	}
	if wanted.Hash != "" && wanted.Hash != d.Hash {
		return differs("whose codes are of hash %q, not %q", d.Hash, wanted.Hash)
	}
	for _, m := range wanted.Modalities {
		i := slices.IndexFunc(d.Modalities, func(o Modality) bool { return o.Name == m.Name })
		if i < 0 {
			return differs("without modality %q: Alter adds it", m.Name)
		}
		has := d.Modalities[i]
		has.SpaceOf = "" // of wanted modalities, in their order
		for _, o := range wanted.Modalities {
			if o.Name == m.Name {
				break
			}
			if j, err := d.ModalityOf(o.Name); err == nil &&
				d.Modalities[j].space() == d.Modalities[i].space() {
				has.SpaceOf = o.Name
				break
			}
		}
		if has != m {
			return differs("whose modality %q is %s, not %s", m.Name, spellModality(has), spellModality(m))
		}
	}
	for _, f := range wanted.Fields {
		i := slices.IndexFunc(d.Fields, func(o Field) bool { return o.Name == f.Name })
		switch {
		case i < 0:
			return differs("without field %q: Alter adds it", f.Name)
		case d.Fields[i].Type == f.Type && f.Indexed && !d.Fields[i].Indexed:
			return differs("whose field %q is not indexed: Alter indexes it", f.Name)
		case d.Fields[i].Type == f.Type && f.Words && !d.Fields[i].Words:
			return differs("whose field %q has no index of words: Alter makes it", f.Name)
		case d.Fields[i].Type != f.Type || d.Fields[i].Indexed != f.Indexed || d.Fields[i].Words != f.Words:
			return differs("whose field %q is %s, not %s", f.Name, spellField(d.Fields[i]), spellField(f))
		}
	}
	return nil
}

func spellModality(m Modality) string {
	s := spellForm(m)
	if m.Metric != "" {
		s += ", by " + string(m.Metric)
	}
	if m.SpaceOf != "" {
		s += ", in the space of " + m.SpaceOf
	}
	return s
}

func spellForm(m Modality) string {
	if m.Sparse {
		return fmt.Sprintf("sparse, of dimension %d", m.Dim)
	}
	return fmt.Sprintf("of dimension %d", m.Dim)
}

func spellField(f Field) string {
	s := fmt.Sprintf("of type %s, not indexed", f.Type)
	if f.Indexed {
		s = fmt.Sprintf("of type %s, indexed", f.Type)
	}
	if f.Words {
		s += ", with an index of words"
	}
	return s
}

// A Modality is one kind of features of a collection: float32 vectors of Dim dimensions. It is
// stored in the Descriptor, and package db exports it: the JSON names are a promise to both.
type Modality struct {
	Name   string `json:"name"`             // see CheckName
	Dim    int    `json:"dim"`              // 1 to MaxDim; never changes
	Sparse bool   `json:"sparse,omitempty"` // stored and computed with as the numbers that are not 0
	Metric Metric `json:"metric,omitempty"` // of its space; "": Cosine
	// name of the first modality of its space; "": it is that itself
	SpaceOf string `json:"space_of,omitempty"`
}

// A Field is a typed attribute of the items of a collection. An item has one value of it or
// none.
type Field struct {
	Name    string    `json:"name"`              // see CheckName
	Type    FieldType `json:"type"`              // never changes
	Indexed bool      `json:"indexed,omitempty"` // filters find its values without reading items
	// an index is being made, or a crash has interrupted that: ignore the sets of rows
	Indexing bool `json:"indexing,omitempty"`
	// of strings: filters find parts of values, and searches words, by the sets of rows of terms
	Words         bool `json:"words,omitempty"`
	IndexingWords bool `json:"indexing_words,omitempty"` // as Indexing
}

// checkWords returns an error if the field has an index of words and no words.
func (f *Field) checkWords() error {
	if (f.Words || f.IndexingWords) && f.Type != String {
		return fault.Invalid("field %q is of type %s: an index of words is of strings", f.Name, f.Type)
	}
	return nil
}

// A FieldType is the type of the values of a field.
type FieldType string

// The types of fields and, in Go, of their values.
const (
	String FieldType = "string" // string
	Int    FieldType = "int"    // int64
	Float  FieldType = "float"  // float64, finite
	Bool   FieldType = "bool"   // bool
	Time   FieldType = "time"   // time.Time, of years 0 to 9999, in whole microseconds
)

// TypeOf returns the type of the fields that have a stored value; "" if none has.
func TypeOf(value any) FieldType {
	switch value.(type) {
	case string:
		return String
	case int64:
		return Int
	case float64:
		return Float
	case bool:
		return Bool
	case codec.Time:
		return Time
	}
	return ""
}

// Sliced returns the image of a stored value by which an indexed field is bit-sliced (codec/sets.go).
// It reports false for a string, which is not.
func Sliced(value any) (image uint64, ok bool) {
	switch v := value.(type) {
	case int64:
		return codec.IntImage(v), true
	case codec.Time:
		return codec.IntImage(int64(v)), true
	case float64:
		return codec.FloatImage(v), true
	case bool:
		return codec.BoolImage(v), true
	}
	return 0, false
}

// OfImage returns the stored value of a field of the type that an image is of.
func OfImage(t FieldType, image uint64) any {
	switch t {
	case Int:
		return codec.IntOf(image)
	case Time:
		return codec.Time(codec.IntOf(image))
	case Float:
		return codec.FloatOf(image)
	}
	return codec.BoolOf(image)
}

// StoredType returns the type of a field value that is stored with a type of package codec.
func StoredType(t byte) FieldType {
	return [...]FieldType{codec.TypeString: String, codec.TypeInt: Int, codec.TypeFloat: Float,
		codec.TypeBool: Bool, codec.TypeTime: Time}[t]
}

// An Encoder describes a program that makes vectors of a modality. The database stores it and runs
// nothing. It is part of the Descriptor, and package db exports it: the JSON names are a promise to
// both.
type Encoder struct {
	Modality string       `json:"modality"` // of the vectors that it prints
	Input    EncoderInput `json:"input"`
	Command  []string     `json:"command"` // the program and its arguments

	// Fingerprint is what the program that stored the encoder knows it by. The database does not read it.
	Fingerprint []byte `json:"fingerprint,omitempty"`

	Standby bool `json:"standby,omitempty"` // not of queries that name no modality
}

// An EncoderInput says what an encoder reads, one a line.
type EncoderInput string

// The inputs of encoders.
const (
	InputText EncoderInput = "text" // texts
	InputFile EncoderInput = "file" // paths of files
)

// WithEncoders returns the descriptor of the collection when it has these encoders and no others. A
// modality has one encoder for each input at most.
func (d *Descriptor) WithEncoders(encoders []Encoder) (*Descriptor, error) {
	with := *d
	with.Encoders = nil
	for _, e := range encoders {
		e.Command, e.Fingerprint = slices.Clone(e.Command), slices.Clone(e.Fingerprint)
		with.Encoders = append(with.Encoders, e)
	}
	// Unknown modalities come first, and checkEncoders refuses them.
	slices.SortStableFunc(with.Encoders, func(a, b Encoder) int { return d.compareEncoders(&a, &b) })
	if err := with.checkEncoders(); err != nil {
		return nil, err
	}
	return &with, nil
}

func (d *Descriptor) compareEncoders(a, b *Encoder) int {
	position := func(e *Encoder) int {
		return slices.IndexFunc(d.Modalities, func(m Modality) bool { return m.Name == e.Modality })
	}
	return cmp.Or(cmp.Compare(position(a), position(b)), cmp.Compare(a.Input, b.Input))
}

// checkEncoders reports what is wrong with the encoders, or with their order, as an ErrInvalid.
func (d *Descriptor) checkEncoders() error {
	for i := range d.Encoders {
		e := &d.Encoders[i]
		if _, err := d.ModalityOf(e.Modality); err != nil {
			return err
		}
		if e.Input != InputText && e.Input != InputFile {
			return fault.Invalid("the encoder of modality %q: unknown input %q: text and file are possible",
				e.Modality, Shortened(string(e.Input)))
		}
		if err := e.checkStored(); err != nil {
			return err
		}
		if i == 0 {
			continue
		}
		switch order := d.compareEncoders(&d.Encoders[i-1], e); {
		case order == 0:
			return fault.Invalid("modality %q has two encoders of input %s: one is possible", e.Modality,
				e.Input)
		case order > 0:
			return fault.Invalid("the encoder of modality %q is not in the order of modalities", e.Modality)
		}
	}
	return nil
}

func (e *Encoder) checkStored() error {
	if len(e.Command) == 0 || e.Command[0] == "" {
		return fault.Invalid("the encoder of modality %q: the command is empty: a program and its arguments are expected", e.Modality)
	}
	size := 0
	for _, word := range e.Command {
		if !utf8.ValidString(word) || strings.ContainsRune(word, 0) {
			return fault.Invalid("the encoder of modality %q: %q is not UTF-8, or has a byte 0", e.Modality,
				Shortened(word))
		}
		size += len(word) + 1
	}
	if size > MaxCommandBytes {
		return fault.Invalid("the encoder of modality %q: a command of %d bytes: at most %d are possible",
			e.Modality, size, MaxCommandBytes)
	}
	if len(e.Fingerprint) > MaxFingerprintBytes {
		return fault.Invalid("the encoder of modality %q: a fingerprint of %d bytes: at most %d are possible",
			e.Modality, len(e.Fingerprint), MaxFingerprintBytes)
	}
	return nil
}
