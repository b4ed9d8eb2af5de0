package doctest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A document is a Markdown file.
type document struct {
	path   string // from the root of the clone, with slashes
	lines  []string
	blocks []*block
}

// These are the kinds of blocks. A setup is a comment with commands.
const (
	console = "console"
	script  = "sh"
	program = "go"
	setup   = "run"
	data    = "data"
)

// A block is a part of a document that is run.
type block struct {
	kind       string
	first, end int      // its lines are lines[first:end] of the document, without the fences
	lines      []string // these lines
	notRun     string   // why it is not run; "" if it is
	commands   []*step
}

// A step of a session is a command with the output that the document shows.
type step struct {
	first, end int // the output is lines[first:end] of the document
	text       string
	output     []string
}

func (d *document) at(line int) string { return fmt.Sprintf("%s:%d", d.path, line+1) }

var comment = regexp.MustCompile(`^<!-- (not run|data): (.+) -->$`)

// parse finds the blocks of a document.
func parse(path, text string) (*document, error) {
	d := &document{path: path, lines: strings.Split(text, "\n")}
	notRun, because := "", 0
	for i := 0; i < len(d.lines); i++ {
		line := d.lines[i]
		switch {
		case line == "<!-- run":
			end, err := d.find("-->", i+1)
			if err != nil {
				return nil, err
			}
			d.add(&block{kind: setup}, i+1, end)
			i = end
		case comment.MatchString(line):
			found := comment.FindStringSubmatch(line)
			if found[1] == "data" {
				d.blocks = append(d.blocks, &block{kind: data, first: i, end: i, lines: []string{found[2]}})
				break
			}
			notRun, because = found[2], i
		case strings.HasPrefix(line, "```"):
			end, err := d.find("```", i+1)
			if err != nil {
				return nil, err
			}
			switch kind := line[3:]; kind {
			case console, script, program:
				b := &block{kind: kind, notRun: notRun}
				d.add(b, i+1, end)
				if err := d.session(b); err != nil {
					return nil, err
				}
			case "", "text", "mermaid", "python", "sql", "crontab":
			default:
				return nil, fmt.Errorf("%s: a block of %q: console, sh and go are run, text and mermaid are not", d.at(i), kind)
			}
			notRun = ""
			i = end
		case strings.HasPrefix(line, "<!--"):
			return nil, fmt.Errorf("%s: %s: such comments are not known, see test/doctest", d.at(i), line)
		case strings.TrimSpace(line) != "" && notRun != "":
			return nil, fmt.Errorf("%s: no block follows this comment", d.at(because))
		}
	}
	return d, nil
}

// find returns the index of the next line that equals line.
func (d *document) find(line string, from int) (int, error) {
	for i := from; i < len(d.lines); i++ {
		if d.lines[i] == line {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%s: %s does not follow", d.at(from-1), line)
}

func (d *document) add(b *block, first, end int) {
	b.first, b.end, b.lines = first, end, d.lines[first:end]
	d.blocks = append(d.blocks, b)
}

// session splits a block into commands and their outputs.
func (d *document) session(b *block) error {
	if b.kind != console {
		return nil
	}
	var last *step
	for i, line := range b.lines {
		text, begins := strings.CutPrefix(line, "$ ")
		more, goesOn := strings.CutPrefix(line, "> ")
		switch {
		case begins:
			last = &step{text: text, first: b.first + i + 1, end: b.first + i + 1}
			b.commands = append(b.commands, last)
		case last == nil:
			return fmt.Errorf("%s: a session begins with a command, $ ...", d.at(b.first+i))
		case goesOn && len(last.output) == 0:
			last.text += "\n" + more
			last.first, last.end = b.first+i+1, b.first+i+1
		default:
			last.output = append(last.output, line)
			last.end = b.first + i + 1
		}
	}
	return nil
}

// root is the folder of the clone.
const root = "../.."

// documents reads all documents.
func documents(t *testing.T) []*document {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var documents []*document
	for _, path := range append([]string{filepath.Join(root, "README.md")}, paths...) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		d, err := parse(filepath.ToSlash(
			strings.TrimPrefix(path, filepath.FromSlash(root)+string(filepath.Separator))), string(b))
		if err != nil {
			t.Error(err)
			continue
		}
		documents = append(documents, d)
	}
	return documents
}

func TestParse(t *testing.T) {
	const text = "# A\n\n<!-- data: wiki -->\n<!-- run\nx=1\n-->\n\n```console\n$ one \\\n>   two\nout\n> out\n$ three\n```\n\n" +
		"<!-- not run: no network -->\n```sh\nfour\n```\n```text\n$ five\n```\n```go\nsix()\n```\n"
	d, err := parse("a.md", text)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range d.blocks {
		s := fmt.Sprintf("%s %q %q", b.kind, strings.Join(b.lines, "|"), b.notRun)
		for _, c := range b.commands {
			s += fmt.Sprintf(" (%q %q %q)", c.text, c.output, d.lines[c.first:c.end])
		}
		got = append(got, s)
	}
	want := []string{
		`data "wiki" ""`,
		`run "x=1" ""`,
		`console "$ one \\|>   two|out|> out|$ three" "" ("one \\\n  two" ["out" "> out"] ["out" "> out"]) ("three" [] [])`,
		`sh "four" "no network"`,
		`go "six()" ""`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, bad := range []string{
		"```console\nout\n```", "```sh\n", "```ruby\n```", "<!-- not run: x -->\ntext", "<!-- runs\n-->",
		"<!-- run\n"} {
		if _, err := parse("a.md", bad); err == nil || !strings.HasPrefix(err.Error(), "a.md:") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
