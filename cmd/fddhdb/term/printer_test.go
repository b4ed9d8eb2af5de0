package term

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
)

const objects = `{"a":1,"b":[1.5,-2e3,null],"c":{"d":[],"e":{}},"f":[{"g":"x, {\\\""},{"h":[[1,2],["]"]]}]}
{}
{"last":[true]}
`

const document = `[
  {
    "a": 1,
    "b": [1.5, -2e3, null],
    "c": {
      "d": [],
      "e": {}
    },
    "f": [
      {
        "g": "x, {\\\""
      },
      {
        "h": [
          [1, 2],
          ["]"]
        ]
      }
    ]
  },
  {},
  {
    "last": [true]
  }
]
`

// laidOut returns objects, a line each, as a document of ModeJSON.
func laidOut(t *testing.T, text string, array bool) string {
	var out bytes.Buffer
	p, cmd := NewPrinter(&out, io.Discard), &cobra.Command{}
	cmd.Flags().Bool("json", false, "")
	if array {
		PrintsObjects(cmd)
	}
	if err := p.Scope(func() error {
		err := p.BeginOutput(cmd, ModeJSON)
		for line := range strings.Lines(text) {
			err = errors.Join(err, p.PrintJSON(json.RawMessage(line)))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestJSONDocument(t *testing.T) {
	if got := laidOut(t, objects, true); got != document {
		t.Fatal(got)
	}
	if got := laidOut(t, "{\"a\":[1,2]}\n", false); got != "{\n  \"a\": [1, 2]\n}\n" {
		t.Errorf("one object: %q", got)
	}
	if got := laidOut(t, "", true); got != "[]\n" {
		t.Errorf("no object: %q", got)
	}
}

// Nothing but white space changes, whatever the objects are.
func FuzzJSONDocument(f *testing.F) {
	f.Add(objects)
	f.Add(`{"a\\":"\u0022","b":[[],[[]],{"c":[]}]}`)
	f.Add(`{"a":["x]", [1, "\n ]"], "[", "\\\n"]}`)
	f.Fuzz(func(t *testing.T, text string) {
		d := json.NewDecoder(strings.NewReader(text))
		var lines bytes.Buffer
		var want []string
		for {
			var v map[string]any
			if d.Decode(&v) != nil || v == nil {
				break
			}
			line := clitest.Must(JSON(v))(t)
			lines.Write(append(line, '\n'))
			want = append(want, string(line))
		}
		var got []json.RawMessage
		if err := json.Unmarshal([]byte(laidOut(t, lines.String(), true)), &got); err != nil ||
			len(got) != len(want) {
			t.Fatalf("%v: %d objects of %d", err, len(got), len(want))
		}
		for i, v := range got {
			var line bytes.Buffer
			if err := json.Compact(&line, v); err != nil || line.String() != want[i] {
				t.Errorf("%s, want %s: %v", line.String(), want[i], err)
			}
		}
	})
}

// hostile is what a terminal obeys, between letters: a title, a line, the control of 8 bits as a character
// and as a byte, and a turn of the direction of text.
const hostile = "a\x1b]0;t\ab\rc\nd\u009b2Je\x9bf\u202eg\u2066h\x7fi\U000e0041j"

func TestPlain(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "é 日本 ▁…": "é 日本 ▁…", `C:\x "y"`: `C:\x "y"`, "\x1b": `\x1b`, "é\n": `é\n`,
		hostile: `a\x1b]0;t\ab\rc\nd\u009b2Je\x9bf\u202eg\u2066h\x7fi\U000e0041j`,
	} {
		if got := Plain(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

// What people see is the same in however many pieces it is written.
func TestPlainWriter(t *testing.T) {
	const text = "é\t日\n" + hostile + "▁\n"
	for size := 1; size <= len(text); size++ {
		var out bytes.Buffer
		w := &plainWriter{to: &out}
		for part := range slices.Chunk([]byte(text), size) {
			if n, err := w.Write(part); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if want := "é\t日\n" + strings.ReplaceAll(Plain(hostile), `\n`, "\n") + "▁\n"; out.String() != want {
			t.Fatalf("by %d bytes: %q, want %q", size, out.String(), want)
		}
	}
}

// JSON is the same for programs, and has nothing that a terminal obeys.
func TestJSON(t *testing.T) {
	valid := strings.ToValidUTF8(hostile, "")
	line, err := JSON(map[string]any{"a": valid, valid: json.RawMessage(`"` + "\x7f\u202e" + `"`),
		"<>": "->"})
	if err != nil || Plain(string(line)) != string(line) || !strings.Contains(string(line), `"<>":"->"`) {
		t.Errorf("%s, %v", line, err)
	}
	var got map[string]string
	if err := json.Unmarshal(line, &got); err != nil || got["a"] != valid || got[valid] != "\x7f\u202e" {
		t.Errorf("%q: %v", got, err)
	}
}

// Whatever is printed, in whatever mode, neither a pager nor stderr gets what a terminal obeys. Programs get
// the bytes.
func TestPeopleSeePlainText(t *testing.T) {
	for _, name := range Modes {
		var stdout, stderr, pager bytes.Buffer
		p := NewPrinter(&stdout, &stderr)
		run := func() {
			t.Helper()
			cmd := &cobra.Command{}
			cmd.Flags().Bool("json", false, "")
			if err := p.Scope(func() error {
				if err := p.BeginOutput(cmd, Mode(name)); err != nil {
					return err
				}
				if p.layout.mode == ModeJSON || p.layout.mode == ModeJSONL {
					return p.PrintJSON(map[string]string{hostile: hostile})
				}
				p.PrintTable([]Column{Left("text"), Left("any"),
					Right(strings.ReplaceAll(hostile, "\n", ""))},
					[][]any{{TextCell(hostile), hostile, NewCell(hostile, hostile)}})
				p.PrintPairs([]Pair{NewPair("a", hostile)})
				p.Printf("%s\n", hostile)
				_, err := io.WriteString(p.Stdout, hostile)
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		run()
		if name == "csv" && !strings.Contains(stdout.String(), "\n\""+hostile+"\",\""+hostile+"\"") {
			t.Errorf("csv for programs: %q", stdout.String())
		}
		people := &plainWriter{to: &pager}
		p.Stdout, p.terminal = bufio.NewWriter(people), os.Stdout // as on a terminal
		run()
		p.Errorf("%s", hostile)
		p.Warnf("%s", hostile)
		p.Notef("%s", hostile)
		fmt.Fprint(p.Stderr, hostile)
		for _, seen := range []string{pager.String(), stderr.String()} {
			if Plain(seen) != strings.ReplaceAll(seen, "\n", `\n`) || !strings.Contains(seen, `\u009b2J`) {
				t.Errorf("%s: %q", name, seen)
			}
		}
	}
}
