package arrows

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
)

// names of packages are paths below that of this module, or whole import paths of
// others. Where rules have them, NAME/... stands for NAME and all below it, and ... for
// all packages.
type names []string

// has says whether one of the names stands for a package, or for the module that it is
// in.
func (n names) has(pkg string) bool {
	return slices.ContainsFunc(n, func(name string) bool {
		if tree, ok := strings.CutSuffix(name, "/..."); ok {
			return within(pkg, tree)
		}
		return pkg == name || name == "..." || foreign(name) && within(pkg, name)
	})
}

// within says whether a package is the one at the root of a tree, or below it.
func within(pkg, root string) bool { return pkg == root || strings.HasPrefix(pkg, root+"/") }

// foreign says whether a path is that of another module: the standard library and ours
// have no dot in the first element.
func foreign(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return strings.Contains(first, ".")
}

// A layer is packages that do not know each other.
type layer struct {
	packages names
	modules  names // of others, which these packages may import
}

// A rule forbids packages more than their layer does.
type rule struct {
	of, but names // the packages, and those that are excepted

	// only, if it is not nil, is all that the packages may import of ours.
	only names

	// never is what they may not reach: packages and modules, neither directly nor through
	// packages of ours, and exported names such as os.Exit, which they may not use
	// themselves.
	never names

	why string
}

// about says whether a package is under the rule.
func (r rule) about(pkg string) bool { return r.of.has(pkg) && !r.but.has(pkg) }

// A plan says where each package stands, and what it may import.
type plan struct {
	layers []layer
	rules  []rule
}

// check returns what is against the plan, sorted.
func (p plan) check(packages map[string]*source) []string {
	var wrong []string
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	floor := map[string]int{} // a number for each layer, 0 being the top
	for i, l := range p.layers {
		for _, name := range l.packages {
			if _, ok := floor[name]; ok {
				bad("%s has two layers", name)
			}
			floor[name] = i
			if packages[name] == nil {
				bad("%s has a layer, but there is no such package", name)
			}
		}
	}
	for name, s := range packages {
		at, ok := floor[name]
		if !ok {
			bad("%s has no layer: decide where it belongs", name)
			continue
		}
		for imported := range s.imports {
			below, ours := floor[imported]
			switch {
			case ours && below <= at:
				bad("%s imports %s, whose layer is not below its own", name, imported)
			case foreign(imported) && !p.layers[at].modules.has(imported):
				bad("%s imports %s, a module that its layer does not name", name, imported)
			}
		}
		for _, r := range p.rules {
			if r.about(name) {
				for _, what := range r.broken(name, packages) {
					bad("%s: %s", what, r.why)
				}
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

// broken returns how a package breaks the rule.
func (r rule) broken(name string, packages map[string]*source) (wrong []string) {
	s := packages[name]
	for imported := range s.imports {
		if r.only != nil && packages[imported] != nil && !r.only.has(imported) {
			wrong = append(wrong, fmt.Sprintf("%s imports %s", name, imported))
		}
	}
	for used := range s.uses {
		if slices.Contains(r.never, used) {
			wrong = append(wrong, fmt.Sprintf("%s uses %s", name, used))
		}
	}
	if reached, through := r.reach(name, packages); reached != "" {
		wrong = append(wrong, fmt.Sprintf("%s depends on %s, which %s imports", name, reached, through))
	}
	return wrong
}

// reach returns the nearest package that the rule forbids a package to depend on, and a
// package that imports it; none is "". It goes through packages of ours that are not
// under the rule themselves: those answer for what they import.
func (r rule) reach(name string, packages map[string]*source) (reached, through string) {
	var forbidden names
	for _, n := range r.never {
		if !isName(n) {
			forbidden = append(forbidden, n)
		}
	}
	seen := map[string]bool{name: true}
	for next := []string{name}; len(next) > 0; next = next[1:] {
		if packages[next[0]] == nil {
			continue // of others
		}
		for _, imported := range slices.Sorted(maps.Keys(packages[next[0]].imports)) {
			switch {
			case forbidden.has(imported):
				return imported, next[0]
			case !seen[imported] && !r.about(imported):
				next = append(next, imported)
			}
			seen[imported] = true
		}
	}
	return "", ""
}

// isName says whether a path is that of an exported name: os.Exit, db/internal/state.DB.
func isName(s string) bool {
	_, name, ok := strings.Cut(path.Base(s), ".")
	return ok && unicode.IsUpper(rune(name[0]))
}
