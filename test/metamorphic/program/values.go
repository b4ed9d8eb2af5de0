package program

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/db"
)

// Programs have numbers in place of vectors and codes, so that a person can read them.
// The functions here make the values.

const Classes = 4 // vectors are drawn from so many classes

// FarAway is the number of a vector that is far from all others. 0 is the number of the
// zero vector.
const FarAway = 1 << 20

// VectorOf returns the vector with a number. It is near the vectors of its class, which
// is the number mod classes.
func VectorOf(m db.Modality, number uint64) []float32 {
	x := make([]float32, m.Dim)
	if number == 0 {
		return x
	}
	if number == FarAway {
		x[0] = 1e9
		return x
	}
	centre := rand.New(rand.NewPCG(number%Classes, uint64(m.Dim)))
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

// SparseOf returns a dense vector in sparse form.
func SparseOf(x []float32) db.Sparse {
	s := db.Sparse{Index: []uint32{}, Value: []float32{}}
	for j, v := range x {
		if v != 0 {
			s.Index, s.Value = append(s.Index, uint32(j)), append(s.Value, v)
		}
	}
	return s
}

// CodeOf returns the code with a number. The first 2^16 codes are near each other, with
// their bits spread over the code; others are random.
func CodeOf(bits int, number uint64) []byte {
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
	MoreModalities = []db.Modality{{Name: "depth", Dim: 3}, {Name: "bag", Dim: 30, Sparse: true},
		{Name: "sound", Dim: 3}}
	MoreFields = []db.Field{
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

// TypeOf returns the type of a field. It is the same in all collections with the field.
func TypeOf(field string) db.FieldType {
	for _, f := range slices.Concat(fields, MoreFields) {
		if f.Name == field {
			return f.Type
		}
	}
	return ""
}

// ValueOf returns the value of a field that is written as text, or nil if that is no
// such value.
func ValueOf(field, text string) any {
	switch TypeOf(field) {
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
	SomeLabels = []string{"a", "b", "c", "it's"}
	NewLabels  = []string{"new", "ä ö"}
	SomeInts   = []string{"-9223372036854775808", "-300", "-1", "0", "1", "2", "255", "256",
		"9007199254740993", "9223372036854775807"}
	SomeFloats  = []string{"-1.7976931348623157e308", "-1.5", "-5e-324", "0", "5e-324", ".1", "1.5", "1e300"}
	SomeStrings = []string{"", "a", "a\x00", "aa", "it's", "two\nlines", "a note", "ä", longest}

	someTimes = []string{"0000-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00Z",
		"2024-05-01T12:30:00Z"}

	SomeOf = map[db.FieldType][]string{db.Int: SomeInts, db.Float: SomeFloats, db.String: SomeStrings,
		db.Bool: {"true", "false"}, db.Time: someTimes}
)

// NewRand returns the random numbers of a seed.
func NewRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
