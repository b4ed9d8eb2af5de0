package flags

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
)

// Named is the value of a flag such as --vectors NAME=FILE.
type Named struct{ Name, Value string }

// NamedList is the value of such a flag, which may be repeated, each name once.
type NamedList struct {
	Kind  string // for help, such as NAME=FILE
	Empty bool   // a value may be empty
	List  []Named
}

func (l *NamedList) String() string { return "" }
func (l *NamedList) Type() string   { return l.Kind }

func (l *NamedList) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" || value == "" && !l.Empty {
		return fmt.Errorf("%s is expected", l.Kind)
	}
	for _, other := range l.List {
		if other.Name == name {
			return fmt.Errorf("%s is given twice", name)
		}
	}
	l.List = append(l.List, Named{name, value})
	return nil
}

// Floats returns the values as numbers; nil if the flag is not given.
func (l *NamedList) Floats(flag string) (map[string]float64, error) {
	var m map[string]float64
	for _, n := range l.List {
		x, err := strconv.ParseFloat(n.Value, 64)
		if err != nil {
			return nil, exit.Usagef("%s %s=%s: %q is not a number", flag, n.Name, n.Value, n.Value)
		}
		if m == nil {
			m = map[string]float64{}
		}
		m[n.Name] = x
	}
	return m, nil
}
