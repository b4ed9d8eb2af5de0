package arrows

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

// Imports go down the layers and keep the rules. With -v it prints the sizes of the
// packages.
func TestImportsFollowTheArrows(t *testing.T) {
	packages, err := readModule("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Log(sizes(packages))
	for _, wrong := range house.check(packages) {
		t.Error(wrong)
	}
}

// sizes returns a table of all packages from the top layer to the ground.
func sizes(packages map[string]*source) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	lines := 0
	row := func(name string) {
		if s := packages[name]; s != nil {
			fmt.Fprintf(w, "%d\t%d\t  %s\n", s.lines, len(s.exported), name)
			lines += s.lines
		}
	}
	fmt.Fprintf(w, "lines\texported\t  package, without tests\n")
	for _, l := range house.layers {
		for _, name := range slices.Sorted(maps.Keys(l)) {
			row(name)
		}
	}
	fmt.Fprintf(w, "%d\t\t  all\n", lines)
	w.Flush()
	return "\n" + b.String()
}

// Every import against a plan is found and named.
func TestWrongImports(t *testing.T) {
	p := plan{
		layers: []layer{
			{"db": {pebble}},
			{"db/internal/search": nil, "db/internal/verify": nil},
			{"db/internal/state": {pebble}},
			{"db/internal/record": nil},
			{"codec": nil},
		},
		rules: []rule{
			{of: names{"db/internal/verify"}, never: names{"db/internal/state"},
				why: "it does not trust what it checks"},
			{of: names{"db/internal/search"}, uses: names{"db/internal/state.View"}, never: names{"os.Exit"},
				why: "a search commits nothing"},
			{of: names{"db/internal/record"}, only: names{}, without: names{goStatement, "sync"},
				why: "a function of bytes"},
			{of: names{"db/..."}, but: names{"db/internal/state"}, never: names{"os"},
				why: "one package opens files"},
			{of: names{"..."}, but: names{"db/..."}, never: names{pebble}, why: "nothing is stored"},
		},
	}
	sound := func() map[string]*source {
		of := func(imports ...string) *source {
			s := &source{imports: map[string]bool{}, uses: map[string]bool{}}
			for _, i := range imports {
				s.imports[i] = true
			}
			return s
		}
		return map[string]*source{
			"db": of("db/internal/search", "db/internal/verify", "codec", "fmt", pebble,
				pebble+"/vfs"),
			"db/internal/search": of("db/internal/record"),
			"db/internal/verify": of("db/internal/record"),
			"db/internal/state":  of("db/internal/record", pebble),
			"db/internal/record": of("fmt"),
			"codec":              of(),
		}
	}
	if wrong := p.check(sound()); wrong != nil {
		t.Fatalf("%q", wrong)
	}
	for _, c := range []struct {
		in, imports, uses string
		want              []string
	}{
		{in: "codec", imports: "db", want: []string{
			"codec depends on github.com/cockroachdb/pebble/v2, which db imports: nothing is stored",
			"codec imports db, whose layer is not below its own",
		}},
		{in: "db/internal/search", imports: "db/internal/verify", want: []string{
			"db/internal/search imports db/internal/verify, whose layer is not below its own",
		}},
		{in: "db/internal/verify", imports: "db/internal/state", want: []string{
			"db/internal/verify depends on db/internal/state, which db/internal/verify imports: it does not trust what it checks",
		}},
		{in: "db/internal/record", imports: "codec", want: []string{
			"db/internal/record imports codec: a function of bytes",
		}},
		{in: "db/internal/search", imports: "db/internal/state", uses: "db/internal/state.View"},
		{in: "db/internal/search", imports: "db/internal/state", uses: "db/internal/state.Committer",
			want: []string{
				"db/internal/search uses db/internal/state.Committer: a search commits nothing",
			}},
		{in: "db/internal/search", imports: "db/internal/state", uses: "db/internal/state.Database",
			want: []string{
				"db/internal/search uses db/internal/state.Database: a search commits nothing",
			}},
		{in: "db/internal/search", uses: "os.Exit", want: []string{
			"db/internal/search uses os.Exit: a search commits nothing",
		}},
		{in: "db/internal/record", imports: "sync", want: []string{
			"db/internal/record has sync in its files: a function of bytes",
		}},
		{in: "db/internal/record", uses: goStatement, want: []string{
			"db/internal/record has a go statement in its files: a function of bytes",
		}},
		{in: "db/internal/verify", imports: "sync"},
		{in: "db/internal/search", imports: pebble + "/vfs", want: []string{
			"db/internal/search imports github.com/cockroachdb/pebble/v2/vfs, a module that does not stand beside it",
		}},
		{in: "db/internal/state", imports: pebble + "2", want: []string{
			"db/internal/state imports github.com/cockroachdb/pebble/v22, a module that does not stand beside it",
		}},
		{in: "db/internal/state", imports: "os"},
		{in: "db", imports: "os", want: []string{
			"db depends on os, which db imports: one package opens files",
		}},
		{in: "db/internal/new", want: []string{
			"db/internal/new has no layer: decide where it belongs",
		}},
	} {
		packages := sound()
		if packages[c.in] == nil {
			packages[c.in] = &source{}
		}
		for path, where := range map[string]map[string]bool{c.imports: packages[c.in].imports,
			c.uses: packages[c.in].uses} {
			if path != "" {
				where[path] = true
			}
		}
		if got := p.check(packages); !slices.Equal(got, c.want) {
			t.Errorf("%s imports %s and uses %s: %q, want %q", c.in, c.imports, c.uses, got, c.want)
		}
	}
	packages := sound()
	delete(packages, "codec")
	delete(packages["db/internal/state"].imports, pebble)
	p.layers = append(p.layers, layer{"db": {pebble}})
	for _, want := range []string{
		"codec has a layer, but there is no such package",
		"db has two layers",
		"db/internal/state does not import github.com/cockroachdb/pebble/v2, which stands beside it",
	} {
		if got := p.check(packages); !slices.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The reader finds what the files of this module say.
func TestReadModule(t *testing.T) {
	packages, err := readModule("../..")
	if err != nil {
		t.Fatal(err)
	}
	codec, dense := packages["codec"], packages["model/internal/dense"]
	if codec == nil || dense == nil || packages["experiments"] != nil || packages["examples/emoji"] != nil {
		t.Fatalf("packages %q", slices.Sorted(maps.Keys(packages)))
	}
	for _, name := range []string{"Code", "NewCode", "Code.Bit"} {
		if !codec.exported[name] {
			t.Errorf("%s is not among the names of codec", name)
		}
	}
	if codec.lines < 1000 || !codec.imports["fmt"] || !codec.uses["fmt.Errorf"] ||
		!packages["mih"].imports["codec"] {
		t.Errorf("codec: %d lines, imports %v", codec.lines, codec.imports)
	}
	if packages["db/internal/record"].uses[goStatement] || !packages["db/internal/store"].uses[goStatement] {
		t.Error("go statements are not found where they are")
	}
	// Files for other platforms count, too.
	if !packages["internal/freemem"].imports["golang.org/x/sys/windows"] {
		t.Errorf("freemem imports %v", packages["internal/freemem"].imports)
	}
}
