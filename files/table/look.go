package table

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/internal/instant"
)

// LookRows is the number of values of a column that decide what it holds.
const LookRows = 1000

// A Look finds out what a column holds from its values, one after the other. The zero Look with a name is
// ready.
type Look struct {
	Column

	values  int                 // so far
	lists   int                 // of the first values those that are lists, bare ones too
	others  int                 // and those that are none
	empty   int                 // empty lists among them
	vectors int                 // lists of numbers among them
	lengths []length            // of these, in order of first appearance
	vector  string              // the first of them, as an example
	numbers int                 // and those that are a number
	hashes  map[uint64]struct{} // of the values so far
	seed    maphash.Seed
}

// A length is one that lists of numbers have.
type length struct {
	numbers, lists int
	place          string // of the first list
}

// mostly reports whether so many of a number of values are nearly all of them: the others are mistakes.
func mostly(n, of int) bool { return n > 0 && (10*(of-n) <= of || of-n == 1 && of > 2) }

// NewLook returns the Look of a column.
func NewLook(name string) Look {
	return Look{Column: Column{Name: name, Kind: Empty, Type: "no value", Whole: true, Flags: true,
		Unique: true}}
}

// Enough reports whether so many values have been seen that further ones change the type of a column of
// numbers or of text at most.
func (l *Look) Enough() bool { return l.values >= LookRows }

// Look adds a value of the column. It reads the cell. place says in words where that is.
func (l *Look) Look(is Is, c Cell, place func() string) error {
	if is != Null && !l.Enough() {
		if is == BareList || is == List || is == Cut {
			l.lists++
		} else {
			l.others++
		}
	}
	switch is {
	case Null:
		return nil
	case List:
		return l.lookAtList(c, place)
	case Cut:
		if l.Cut == "" {
			l.Cut = place()
		}
		l.other("arrays that numpy cut when it printed them", place)
		return nil
	case Text, BareList, Bool, Int, Float, Time:
		text, err := c.Text()
		if err != nil {
			return err
		}
		typ := is.Field()
		if is == Text && !l.Text && (l.Kind == Empty || l.Type == "time") && instant.IsDate(string(text)) {
			typ = "time"
		}
		l.scalar(typ, text, place)
		return nil
	}
	if !l.Enough() {
		l.other("objects", place)
	}
	return nil
}

// Found returns what the column holds.
func (l *Look) Found() Column {
	c := l.Column
	if seen := l.lists + l.others - l.empty; mostly(l.vectors, seen) {
		c.Kind, c.Type, c.Example, c.Unique = Numbers, listsOfNumbers, l.vector, false
		best := slices.MaxFunc(l.lengths, func(a, b length) int { return cmp.Compare(a.lists, b.lists) })
		if c.Dim = best.numbers; !mostly(best.lists, l.vectors) {
			a, b := l.lengths[0], l.lengths[1]
			c.Ragged = fmt.Sprintf("%d in %s, %d in %s", a.numbers, a.place, b.numbers, b.place)
		}
	} else {
		c.Lists = l.vectors > 0
		c.Numeric = c.Kind == Scalars && mostly(l.numbers, seen)
	}
	if c.Kind == Scalars && c.Type == "string" && l.lists > 0 && l.others == 0 {
		c.Listed, c.Joined = true, ""
	}
	return c
}

func (l *Look) lookAtList(c Cell, place func() string) error {
	var strings, numbers, others bool
	var start []string
	n, err := c.List(func(is Is, text []byte) bool {
		switch is {
		case Text:
			strings = true
		case Int, Float:
			l.element(is, text)
			numbers = true
		case Null: // NaN
			numbers = true
		default:
			others = true
		}
		if len(start) < ListStart {
			start = append(start, string(text))
		}
		return !l.Enough()
	})
	switch {
	case err != nil: // an error of its row
		if !l.Enough() {
			l.lists--
		}
		return err
	case l.Enough() && !l.Text:
	case others || strings && numbers:
		l.other("lists of other things", place)
	case strings:
		l.list(Strings, n, place, start)
	default:
		l.list(Numbers, n, place, start)
	}
	return nil
}

// scalar adds a value of a field, with its type and its text.
func (l *Look) scalar(typ string, text []byte, place func() string) {
	number := func(typ string) bool { return typ == "int" || typ == "float" }
	texts := func(typ string) bool { return typ == "string" || typ == "time" }
	enough := l.Enough()
	l.values++
	if number(typ) && !enough {
		l.numbers++
	}
	switch {
	case l.Kind == Empty:
		l.Kind, l.Type = Scalars, typ
		l.Example = example(string(text))
	case l.Kind == Scalars && l.Type == typ:
	case l.Kind == Scalars && number(l.Type) && number(typ):
		l.Type = "float"
	case l.Kind == Scalars && texts(l.Type) && texts(typ):
		l.Type = "string"
	case l.Text && (l.Kind == Scalars || !enough):
		l.Kind, l.Type = Scalars, "string"
	case !enough:
		l.mix(scalars[typ], place)
	}
	if enough {
		return
	}
	if typ == "string" && l.Joined == "" {
		if s := example(string(text)); Separator(s) != "" {
			l.Joined = s
		}
	}
	if typ == "float" && l.Whole {
		_, err := WholeLabel(text)
		l.Whole = err == nil
	}
	bit := typ == "bool" || len(text) == 1 && (text[0] == '0' || text[0] == '1')
	if l.Flags = l.Flags && bit && (l.Type == "bool" || l.Type == "int"); !l.Unique {
		return
	}
	if l.hashes == nil {
		l.hashes, l.seed = map[uint64]struct{}{}, maphash.MakeSeed()
	}
	hash := maphash.Bytes(l.seed, text)
	if _, twice := l.hashes[hash]; twice || !l.named() {
		l.Unique, l.hashes = false, nil
		return
	}
	l.hashes[hash] = struct{}{}
}

// list adds a list: its kind, its length, its place in words, and its first elements. An empty list is no
// value of a column of lists.
func (l *Look) list(kind Kind, n int, place func() string, start []string) {
	enough := l.Enough()
	l.values++
	l.Unique = false
	if kind != Numbers {
		l.Flags = false
	}
	what := map[Kind]string{Numbers: listsOfNumbers, Strings: "lists of strings"}[kind]
	show := "[" + strings.Join(start, ", ")
	if n > len(start) {
		show += ", ..."
	}
	show = example(show + "]")
	switch {
	case enough:
	case n == 0:
		l.empty++
	case kind == Numbers:
		l.vectors++
		i := slices.IndexFunc(l.lengths, func(x length) bool { return x.numbers == n })
		if i < 0 {
			i = len(l.lengths)
			l.lengths = append(l.lengths, length{numbers: n, place: place()})
		}
		l.lengths[i].lists++
		l.vector = cmp.Or(l.vector, show)
	}
	switch {
	case l.Kind == Empty && n == 0:
		l.Kind, l.Type = Strings, emptyLists
		return
	case l.Kind == Empty, l.Type == emptyLists && n > 0:
		l.Kind, l.Type, l.Example = kind, what, show
	case l.Kind == kind:
	case l.Kind == Scalars && l.Text:
		l.Type = "string"
	case n > 0 && !enough:
		l.mix(what, place)
	}
}

const (
	emptyLists     = "empty lists"
	listsOfNumbers = "lists of numbers"
)

// element adds a number of a list, before the list.
func (l *Look) element(is Is, text []byte) {
	l.Whole = l.Whole && is == Int
	l.Flags = l.Flags && l.Whole && len(text) == 1 && (text[0] == '0' || text[0] == '1')
}

// other adds a value that no item can hold, with its type in words.
func (l *Look) other(what string, place func() string) {
	enough := l.Enough()
	l.values++
	switch {
	case l.Kind == Empty:
		l.Kind, l.Type = Other, what
	case l.Kind != Mixed && (l.Kind != Other || l.Type != what) && !enough:
		l.mix(what, place)
	}
}

// mix notes values of different types.
func (l *Look) mix(what string, place func() string) {
	if l.Kind != Mixed {
		l.Type = fmt.Sprintf("values of several types, %s and, in %s, %s", l.Holds(), place(), what)
	}
	l.Kind, l.Flags, l.Unique = Mixed, false, false
}

// example cuts text to a few characters.
func example(s string) string {
	const most = 40
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	runes := []rune(s[:min(len(s), 4*most)])
	return string(runes[:most-3]) + "..."
}

// ListStart is the number of elements of a list that an example has.
const ListStart = 3

// WholeLabel returns the label of a class number, which may be written as 1.0; "" for -1 and NaN, which are
// none.
func WholeLabel(number []byte) (string, error) {
	n, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		const exact = 1 << 53 // below which each integer is a float64 of its own
		x, ferr := strconv.ParseFloat(string(number), 64)
		if ferr == nil && x == math.Trunc(x) && math.Abs(x) < exact {
			n, err = int64(x), nil
		} else if ferr == nil && math.IsNaN(x) {
			n, err = -1, nil
		}
	}
	switch {
	case errors.Is(err, strconv.ErrRange) && len(bytes.Trim(number, "0123456789")) == 0:
		return string(number), nil
	case err != nil:
		return "", fmt.Errorf("is %s: labels are strings, or whole numbers", matrix.Quote(number))
	case n == -1:
		return "", nil
	}
	return strconv.FormatInt(n, 10), nil
}
