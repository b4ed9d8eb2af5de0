package term

import (
	"bufio"
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
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

// laidOut returns objects as a document, written in pieces of a size.
func laidOut(text string, array bool, size int) string {
	var out bytes.Buffer
	d := &jsonDocument{out: bufio.NewWriter(&out), array: array}
	for part := range slices.Chunk([]byte(text), size) {
		_, _ = d.Write(part)
	}
	d.end(true)
	_ = d.out.Flush()
	return out.String()
}

// However lines are cut into writes, the document is the same.
func TestJSONDocument(t *testing.T) {
	for size := 1; size <= len(objects); size++ {
		if got := laidOut(objects, true, size); got != document {
			t.Fatalf("by %d bytes:\n%s", size, got)
		}
	}
	if got := laidOut("{\"a\":[1,2]}\n", false, 3); got != "{\n  \"a\": [1, 2]\n}\n" {
		t.Errorf("one object: %q", got)
	}
	if got := laidOut("", true, 1); got != "[]\n" {
		t.Errorf("no object: %q", got)
	}
}

// Nothing but white space changes, whatever the objects are.
func FuzzJSONDocument(f *testing.F) {
	f.Add(objects, 7)
	f.Add(`{"a\\":"\u0022","b":[[],[[]],{"c":[]}]}`, 1)
	f.Fuzz(func(t *testing.T, text string, size int) {
		d := json.NewDecoder(strings.NewReader(text))
		var lines bytes.Buffer
		var want []string
		for {
			var v map[string]any
			if d.Decode(&v) != nil || v == nil {
				break
			}
			line, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			lines.Write(append(line, '\n'))
			want = append(want, string(line))
		}
		var got []json.RawMessage
		if err := json.Unmarshal([]byte(laidOut(lines.String(), true, max(1, size))), &got); err != nil || len(got) != len(want) {
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
