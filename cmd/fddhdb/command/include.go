package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
)

// includeFlag is --include: the parts of items that hits are printed with. The flag may be
// repeated.
type includeFlag struct{ parts db.Include }

// An includePart is a part with its name.
type includePart struct {
	name string
	part db.Include
}

// includeParts are all of them.
var includeParts = []includePart{
	{"labels", db.IncludeLabels}, {"fields", db.IncludeFields}, {"payload", db.IncludePayload}, {"vectors", db.IncludeVectors},
}

func (f *includeFlag) Type() string { return "LIST" }

func (f *includeFlag) String() string {
	var names []string
	for _, x := range includeParts {
		if f.parts&x.part != 0 {
			names = append(names, x.name)
		}
	}
	return strings.Join(names, ",")
}

func (f *includeFlag) Set(s string) error {
	const possible = "a list of labels, fields, payload and vectors is expected"
	names := splitList(s)
	if len(names) == 0 {
		return errors.New(possible)
	}
	for _, name := range names {
		i := slices.IndexFunc(includeParts, func(x includePart) bool { return x.name == name })
		if i < 0 {
			return fmt.Errorf("there is no part %q: %s", name, possible)
		}
		f.parts |= includeParts[i].part
	}
	return nil
}

// strip removes those parts of the items that --include does not name. A contact sheet reads more
// parts than are printed.
func (f *includeFlag) strip(r *db.Result) {
	for i := range r.Hits {
		it := r.Hits[i].Item
		if f.parts == 0 {
			r.Hits[i].Item = nil
		} else if it != nil {
			if f.parts&db.IncludeLabels == 0 {
				it.Labels = nil
			}
			if f.parts&db.IncludeFields == 0 {
				it.Fields = nil
			}
			if f.parts&db.IncludePayload == 0 {
				it.Payload = nil
			}
		}
	}
}
