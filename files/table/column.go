package table

import (
	"fmt"
	"strings"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// A Kind says what the values of a column are.
type Kind byte

// Kinds of columns.
const (
	Other         Kind = iota // values that no item can hold; Type says in words what they are
	Mixed                     // values of several kinds or types: rows with others than wanted are errors
	Empty                     // no row has a value
	Scalars                   // values of a field, of Type string, int, float, bool or time
	Numbers                   // lists of numbers
	Strings                   // lists of strings
	SparseVectors             // sparse vectors
	Bytes                     // bytes
)

// A Column describes a column of a table. What depends on values holds for the first thousand of them.
type Column struct {
	Name string
	Kind Kind
	Type string // of Scalars the type of the field, else the type in words

	Dim    int    // of Numbers: the length of the lists; 0 if there was none
	Ragged string // of Numbers: in words, two rows whose lists differ in length; else ""
	Whole  bool   // of Numbers: all are written as whole; of Scalars of Type float: all are whole, as 1.0 is
	Flags  bool   // all values are bools, or all are 0 or 1; of Numbers: all numbers are 0 or 1
	Unique bool   // of strings, ints and times: no value comes twice
	Listed bool   // of Type string in a .csv: the first values are lists of strings, some without quotes, as [a, b]: each element is a label
	Joined string // of Type string: the first value, cut as Example, that may be a list, as Separator finds one in it; "" if none does

	Text    bool   // values are text, so that a field of strings can have all of them
	Example string // the first value as text, cut to a few characters
}

// A Role is what a column becomes.
type Role byte

// Roles of columns.
const (
	LeftAside Role = iota
	AsKey          // the key: a string, or an int or a time as text
	AsLabels       // labels: a string, a whole number or a time is one, a list of them several; -1 is none. See Hot
	AsLabel        // the label Use.Name where the value is true or 1, and not where it is false or 0
	AsPayload      // the payload: bytes
	AsCode         // the code: bytes
	AsVector       // the vector of modality Use.Name
	AsField        // the value of field Use.Name
)

// A Use says what a column becomes.
type Use struct {
	Role Role
	Name string // of the modality, field or label
	Type string // of a field: the type that the text of a .csv is parsed as

	Separator string // of labels: what stands between those of one string; "": a string is one label
}

// Labels appends the labels of a string to a list: one, or with a Separator those between it, without blanks
// around them, and none of an empty part.
func (u *Use) Labels(to []string, text string) []string {
	if u.Separator == "" {
		return append(to, text)
	}
	for part := range strings.SplitSeq(text, u.Separator) {
		if part = strings.TrimSpace(part); part != "" {
			to = append(to, part)
		}
	}
	return to
}

// Separator returns what may separate several labels in a text: the first of |, ; and , that has other text
// on both sides; "" if none has.
func Separator(text string) string {
	for _, s := range []string{"|", ";", ","} {
		if before, after, found := strings.Cut(text, s); found && strings.TrimSpace(before) != "" && strings.TrimSpace(after) != "" {
			return s
		}
	}
	return ""
}

// Suits returns why the column cannot become what the use says, nil if it can.
func (c *Column) Suits(u Use) error {
	suits, want := true, ""
	switch u.Role {
	case AsKey:
		suits, want = c.named(), "keys are strings, integers or times"
	case AsLabels:
		suits, want = c.Kind == Strings || c.Kind == Numbers && c.Whole || c.named() || c.Kind == Scalars && c.Type == "float" && c.Whole, "labels are strings or whole numbers, or lists of them"
	case AsLabel:
		suits, want = c.Kind == Scalars && c.Flags, "a column that is a label has bools, or 0 and 1"
	case AsPayload, AsCode:
		suits, want = c.Kind == Bytes, "payloads and codes are bytes"
	case AsVector:
		suits, want = c.Kind == Numbers || c.Kind == SparseVectors, "vectors are lists of numbers"
	case AsField:
		suits, want = c.Kind == Scalars || c.Text && u.Type == "string", "fields are strings, integers, numbers, bools or times"
	}
	if suits || c.Kind == Empty || c.Kind == Mixed {
		return nil
	}
	return fmt.Errorf("column %s has %s: %s", matrix.Quote(c.Name), c.Holds(), want)
}

// named reports whether the values can be names of items or of classes.
func (c *Column) named() bool {
	return c.Kind == Scalars && (c.Type == "string" || c.Type == "int" || c.Type == "time")
}

// Holds returns what the values of the column are, in words.
func (c *Column) Holds() string {
	if c.Kind != Scalars {
		return c.Type
	}
	if words, ok := scalars[c.Type]; ok {
		return words
	}
	return c.Type + "s"
}

// scalars are the types of fields in words.
var scalars = map[string]string{"string": "strings", "int": "integers", "float": "numbers", "bool": "bools", "time": "times"}

// Hot reports whether the lists of the column are rows of a matrix of 0 and 1, all of one length of 2 or
// more: as labels, the place of each 1 is one. Lists of one number have a class each.
func (c *Column) Hot() bool { return c.Kind == Numbers && c.Flags && c.Dim > 1 && c.Ragged == "" }

// Describe returns what the column holds, with the length of its lists.
func (c *Column) Describe() string {
	if c.Kind == Numbers && c.Dim > 0 && c.Ragged == "" {
		return fmt.Sprintf("lists of %d numbers", c.Dim)
	}
	return c.Holds()
}
