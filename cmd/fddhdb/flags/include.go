package flags

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
)

// Include is the value of --include: the parts of items that hits are printed with. The flag may be
// repeated.
type Include struct{ Parts db.Include }

// An includePart is a part with its name.
type includePart struct {
	name string
	part db.Include
}

// includeParts are all of them.
var includeParts = []includePart{
	{"labels", db.IncludeLabels}, {"fields", db.IncludeFields}, {"payload", db.IncludePayload}, {"vectors", db.IncludeVectors},
}

func (f *Include) Type() string { return "LIST" }

func (f *Include) String() string {
	var names []string
	for _, x := range includeParts {
		if f.Parts&x.part != 0 {
			names = append(names, x.name)
		}
	}
	return strings.Join(names, ",")
}

func (f *Include) Set(s string) error {
	const possible = "a list of labels, fields, payload and vectors is expected"
	names := SplitList(s)
	if len(names) == 0 {
		return errors.New(possible)
	}
	for _, name := range names {
		i := slices.IndexFunc(includeParts, func(x includePart) bool { return x.name == name })
		if i < 0 {
			return fmt.Errorf("there is no part %q: %s", name, possible)
		}
		f.Parts |= includeParts[i].part
	}
	return nil
}
