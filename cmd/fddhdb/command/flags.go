package command

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db"
)

// common are flags that most verbs have.
type common struct {
	collection string
	space      spaceFlag // not registered if the verb reads no codes
	json       bool
}

// register adds the flags to a verb.
func (o *common) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.collection, "collection", "main", "the collection `NAME` to work on")
	o.registerJSON(cmd)
}

func (o *common) registerJSON(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
}

// registerSpace adds --space to a verb that reads codes.
func (o *common) registerSpace(cmd *cobra.Command) {
	o.space.register(cmd, "look at the codes of space `N` (default: the active one)")
}

// formerly lets a flag go by the name that it had in earlier versions, too. Scripts may
// use that; help and completion do not show it.
func formerly(cmd *cobra.Command, old, name string) {
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, flag string) pflag.NormalizedName {
		if flag == old {
			flag = name
		}
		return pflag.NormalizedName(flag)
	})
}

// named is the value of a flag such as --vectors NAME=FILE.
type named struct{ name, value string }

// namedList is the value of such a flag, which may be repeated, each name once.
type namedList struct {
	kind  string // for help, such as NAME=FILE
	empty bool   // a value may be empty
	list  []named
}

func (l *namedList) String() string { return "" }
func (l *namedList) Type() string   { return l.kind }

func (l *namedList) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" || value == "" && !l.empty {
		return fmt.Errorf("%s is expected", l.kind)
	}
	for _, other := range l.list {
		if other.name == name {
			return fmt.Errorf("%s is given twice", name)
		}
	}
	l.list = append(l.list, named{name, value})
	return nil
}

// floats returns the values as numbers; nil if the flag is not given.
func (l *namedList) floats(flag string) (map[string]float64, error) {
	var m map[string]float64
	for _, n := range l.list {
		x, err := strconv.ParseFloat(n.value, 64)
		if err != nil {
			return nil, exit.Usagef("%s %s=%s: %q is not a number", flag, n.name, n.value, n.value)
		}
		if m == nil {
			m = map[string]float64{}
		}
		m[n.name] = x
	}
	return m, nil
}

// splitList splits a,b,... without surrounding blanks and empty entries.
func splitList(s string) []string {
	var list []string
	for _, f := range strings.Split(s, ",") {
		if f = strings.TrimSpace(f); f != "" {
			list = append(list, f)
		}
	}
	return list
}

// dirArg accepts the folder of a database as the only argument.
func dirArg(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || args[0] == "":
		return exit.Usagef("%s needs the folder of a database: fddhdb %s", cmd.Name(), cmd.Use)
	case len(args) > 1:
		return exit.Usagef("%s does not know what to do with %q: fddhdb %s", cmd.Name(), args[1], cmd.Use)
	}
	return nil
}

// dirAndKeys accepts a folder and from least to most keys. A most of 0 means any
// number.
func dirAndKeys(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 || args[0] == "":
			return exit.Usagef("%s needs the folder of a database: fddhdb %s", cmd.Name(), cmd.Use)
		case len(args)-1 < least:
			return exit.Usagef("%s needs the key of an item: fddhdb %s", cmd.Name(), cmd.Use)
		case most > 0 && len(args)-1 > most:
			return exit.Usagef("%s does not know what to do with %q: fddhdb %s", cmd.Name(), args[most+1], cmd.Use)
		}
		for _, key := range args[1:] {
			if key == "" || len(key) > db.MaxKeyBytes {
				return exit.Usagef("the key %.40q: keys have 1 to %d bytes", key, db.MaxKeyBytes)
			}
		}
		return nil
	}
}
