package doctest

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"
)

var update = flag.Bool("update", false, "write what is printed into the documents")

func TestMain(m *testing.M) {
	// Under these names the test binary is fddhdb, go, or an example.
	switch name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"); {
	case name == "fddhdb":
		os.Exit(fddhdbCommand(os.Args[1:]))
	case name == "go":
		os.Exit(goCommand(os.Args[1:]))
	case slices.Contains(examples, name):
		if os.Getenv("DOCTEST_LOG") != "" {
			os.Exit(0) // a look through runs nothing
		}
		os.Exit(runProgram(name, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// TestDocuments runs the blocks of all documents.
func TestDocuments(t *testing.T) {
	all := documents(t)
	if testing.Short() {
		t.Skip("the blocks are parsed, not run")
	}
	needShell(t)
	p := build(t, all)
	commands := commandFolder(t)
	for _, d := range all {
		t.Run(strings.TrimSuffix(filepath.Base(d.path), ".md"), func(t *testing.T) {
			if name := filepath.Base(d.path); name == "TUTORIAL.md" || name == "HOWTO.md" { // they train
				effort.Slow(t)
			}
			t.Parallel()
			d.run(t, p, commands)
		})
	}
}

func (d *document) run(t *testing.T, p *programs, commands string) {
	s := newShell(t, commands, p.binary)
	pending := "" // the program that has not been run yet
	for _, b := range d.blocks {
		if t.Failed() && s.ended {
			t.Fatalf("%s: what follows was not run", d.at(b.first))
		}
		switch {
		case b.kind == data:
			if !effort.Long() && !*update {
				t.Skipf("%s: trainings on ../shared/data/%s take long: -args -long, or make docs; what follows was not run", d.at(b.first), b.lines[0])
			}
			if !s.link(t, b.lines[0]) {
				t.Skipf("%s: ../shared/data/%s is not there: what follows was not run", d.at(b.first),
					b.lines[0])
			}
		case b.kind == program:
			if name := p.names[b]; name != "" && b.notRun == "" {
				d.runPending(t, s, pending)
				pending = name
				s.run("DOCTEST_PROGRAM=" + name)
			}
		case b.notRun != "":
			text := strings.Join(b.lines, "\n")
			if b.kind == console {
				text = ""
				for _, c := range b.commands {
					text += c.text + "\n"
				}
			}
			if problems := lookThrough(t, text, commands); problems != "" {
				t.Errorf("%s: the block is not run, but it could not be, either:\n%s", d.at(b.first),
					problems)
			}
		case b.kind == console:
			for _, c := range b.commands {
				if strings.HasPrefix(c.text, "go run .") {
					pending = ""
				}
				d.compare(t, s, c)
			}
		default:
			if out, code := s.run("set -e\n" + strings.Join(b.lines, "\n") + "\nset +e"); code != 0 {
				t.Errorf("%s: the exit code is %d after\n%s", d.at(b.first), code, strings.Join(out, "\n"))
			}
		}
	}
	d.runPending(t, s, pending)
	if *update && !t.Failed() {
		d.write(t)
	}
}

// runPending runs the program of a document, unless a session has run it.
func (d *document) runPending(t *testing.T, s *shell, name string) {
	if name == "" {
		return
	}
	if out, code := s.run("go run ."); code != 0 {
		t.Errorf("%s: the program %s ends with %d after\n%s", d.path, name, code, strings.Join(out, "\n"))
	}
}

// compare runs a command of a session.
func (d *document) compare(t *testing.T, s *shell, c *step) {
	out, code := s.run(c.text)
	if code != 0 && !endsInError(c.output) && !(*update && endsInError(out)) {
		t.Errorf("%s: %s\nends with %d after\n%s", d.at(c.first-1), c.text, code, strings.Join(out, "\n"))
		return
	}
	first := difference(c.output, out)
	if first < 0 {
		return
	}
	if *update {
		c.output = out
		return
	}
	want := "(nothing more)"
	if first < len(c.output) {
		want = c.output[first]
	}
	t.Errorf("%s: %s\nprints\n%s\nand not, as the document says,\n%s\nThe first line that is not there: %s\n"+
		"If it is right so: go -C test test ./doctest -args -update",
		d.at(c.first-1), c.text, indent(out), indent(c.output), want)
}

func endsInError(lines []string) bool {
	return len(lines) > 0 && strings.HasPrefix(lines[len(lines)-1], "fddhdb: ")
}

func indent(lines []string) string { return "    " + strings.Join(lines, "\n    ") }

// write writes the document with the new outputs of its commands.
func (d *document) write(t *testing.T) {
	var lines []string
	last := 0
	for _, b := range d.blocks {
		for _, c := range b.commands {
			lines = append(append(lines, d.lines[last:c.first]...), c.output...)
			last = c.end
		}
	}
	lines = append(lines, d.lines[last:]...)
	if strings.Join(lines, "\n") == strings.Join(d.lines, "\n") {
		return
	}
	if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(d.path)), []byte(strings.Join(lines, "\n")),
		0o666); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s is written", d.path)
}
