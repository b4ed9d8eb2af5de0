package arrows

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
)

// names holds names of packages. A package of this module is named by its path below
// the module's; a foreign package by its whole import path. In a rule, NAME/... stands
// for NAME and all packages below it, and ... for all packages.
type names []string

// has reports whether one of the names stands for the package pkg, or for the module
// that contains it.
func (n names) has(pkg string) bool {
	return slices.ContainsFunc(n, func(name string) bool {
		if tree, ok := strings.CutSuffix(name, "/..."); ok {
			return within(pkg, tree)
		}
		return pkg == name || name == "..." || foreign(name) && within(pkg, name)
	})
}

// and returns these names with more.
func (n names) and(more ...string) names { return slices.Concat(n, more) }

// within reports whether pkg is the package at the root of a tree, or below it.
func within(pkg, root string) bool { return pkg == root || strings.HasPrefix(pkg, root+"/") }

// foreign reports whether a path belongs to a foreign module. The paths of the standard
// library and ours have no dot in the first element.
func foreign(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return strings.Contains(first, ".")
}

// A layer is a set of packages that do not import each other, with the foreign modules
// that each of them imports.
type layer map[string]names

// A rule forbids packages more imports than their layer does.
type rule struct {
	of, but names // the packages under the rule, and the exceptions

	// only, if it is not nil, lists all packages of ours that these packages may
	// import.
	only names

	// uses, if it is not nil, lists exported names of other packages. Of a package that
	// has a name in the list, no other name may be used.
	uses names

	// without lists what the packages' own files may not have: imports, and goStatement.
	without names

	// never lists what the packages may not reach. Packages and modules are forbidden
	// directly and through packages of ours. Exported names, such as os.Exit, are
	// forbidden in the packages' own files.
	never names

	why string
}

// about reports whether a package is under the rule.
func (r rule) about(pkg string) bool { return r.of.has(pkg) && !r.but.has(pkg) }

// A plan says where each package stands and what it may import.
type plan struct {
	layers []layer
	rules  []rule
}

// check returns the violations of the plan, sorted.
func (p plan) check(packages map[string]*source) []string {
	var wrong []string
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	floor := map[string]int{} // a number for each layer, 0 being the top
	for i, l := range p.layers {
		for name := range l {
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
			case foreign(imported) && !p.layers[at][name].has(imported):
				bad("%s imports %s, a module that does not stand beside it", name, imported)
			}
		}
		for _, module := range p.layers[at][name] {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(s.imports)), names{module}.has) {
				bad("%s does not import %s, which stands beside it", name, module)
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

// broken returns how the package called name breaks the rule.
func (r rule) broken(name string, packages map[string]*source) (wrong []string) {
	s := packages[name]
	for imported := range s.imports {
		if r.only != nil && packages[imported] != nil && !r.only.has(imported) {
			wrong = append(wrong, fmt.Sprintf("%s imports %s", name, imported))
		}
	}
	for _, what := range r.without {
		if s.imports[what] || s.uses[what] {
			wrong = append(wrong, fmt.Sprintf("%s has %s in its files", name, what))
		}
	}
	for used := range s.uses {
		named := func(allowed string) bool { return packageOf(allowed) == packageOf(used) }
		if slices.Contains(r.never, used) || slices.ContainsFunc(r.uses, named) && !slices.Contains(r.uses,
			used) {
			wrong = append(wrong, fmt.Sprintf("%s uses %s", name, used))
		}
	}
	if reached, through := r.reach(name, packages); reached != "" {
		wrong = append(wrong, fmt.Sprintf("%s depends on %s, which %s imports", name, reached, through))
	}
	return wrong
}

// reach returns the nearest forbidden package that a package depends on, and the
// package that imports it; reached is "" if there is none. It follows imports through
// packages of ours that are not under the rule. Those under it are checked by
// themselves.
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
			continue // a foreign package
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

// packageOf returns the package of an exported name.
func packageOf(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }

// isName reports whether a path names an exported name, such as os.Exit or
// db/internal/state.DB.
func isName(s string) bool {
	_, name, ok := strings.Cut(path.Base(s), ".")
	return ok && unicode.IsUpper(rune(name[0]))
}
