package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fddhdb/fddhdb/db"
)

// A draft is an answer that can be made smaller: without its last rows, and with shorter texts.
type draft struct {
	rows int // hits, items and the like, that can be left out from the end

	// form returns the JSON of the answer with the first rows, written by a cutter.
	form func(rows int, c *cutter) any

	picture *mcp.ImageContent // goes with the answer where there is room
}

// whole is a draft without parts.
func whole(form any) *draft { return &draft{form: func(int, *cutter) any { return form }} }

// A cutter bounds the parts of a row: the bytes of a text, and the number of fields, labels and vectors.
// 0 is no bound.
type cutter struct{ text, entries int }

// cutters are tried one after the other, behind one that leaves every text that may fit whole.
var cutters = []*cutter{{2000, 0}, {600, 100}, {200, 30}, {80, 10}, {40, 4}}

// keepRows is the cutter behind which rows are left out, before their parts become shorter still.
const keepRows = 2

// envelope is what the protocol adds to an answer, at most.
const envelope = 384

// fit returns the answer with as much of the draft as fits.
func (d *draft) fit(most int) (*mcp.CallToolResult, error) {
	if r, err := d.result(d.rows, &cutter{text: most}, most); r != nil || err != nil {
		return r, err
	}
	// Texts of the length that just fits, where that is longer than the first cutter leaves them.
	var longest *mcp.CallToolResult
	for low, high := cutters[0].text, most; low+low/8 < high; {
		n := (low + high) / 2
		r, err := d.result(d.rows, &cutter{text: n}, most)
		if err != nil {
			return nil, err
		}
		if r != nil {
			low, longest = n, r
		} else {
			high = n
		}
	}
	if longest != nil {
		return longest, nil
	}
	for i, c := range cutters {
		if r, err := d.result(d.rows, c, most); r != nil || err != nil {
			return r, err
		}
		if i != keepRows || d.rows < 2 {
			continue
		}
		// The most rows that fit: 1 may not.
		low, high := 0, d.rows
		var best *mcp.CallToolResult
		for low+1 < high {
			n := (low + high) / 2
			r, err := d.result(n, c, most)
			if err != nil {
				return nil, err
			}
			if r != nil {
				low, best = n, r
			} else {
				high = n
			}
		}
		if best != nil {
			return best, nil
		}
		d.rows = 1
	}
	if r, err := d.result(0, cutters[len(cutters)-1], most); r != nil || err != nil {
		return r, err
	}
	return nil, fmt.Errorf("the answer has more than %d bytes, however it is cut: give max_bytes, up to %d",
		most, mostBytes)
}

// result returns the answer with the first rows, nil if it is too large.
func (d *draft) result(rows int, c *cutter, most int) (*mcp.CallToolResult, error) {
	form := d.form(rows, c)
	text, err := json.Marshal(form)
	if err != nil {
		return nil, err
	}
	if len(text) > most {
		return nil, nil
	}
	r := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}},
		StructuredContent: json.RawMessage(text)}
	size, err := json.Marshal(r)
	if err != nil || len(size)+envelope > most {
		return nil, err
	}
	if d.picture == nil {
		return r, nil
	}
	if needed := len(size) + envelope + base64.StdEncoding.EncodedLen(len(d.picture.Data)); needed <= most {
		r.Content = append(r.Content, d.picture)
	} else {
		why := fmt.Sprintf("the picture does not fit: max_bytes %d shows it", needed)
		if needed > mostBytes {
			why = fmt.Sprintf("the picture is not shown: it does not fit into %d bytes", mostBytes)
		}
		r.Content = append(r.Content, &mcp.TextContent{Text: why})
	}
	return r, nil
}

// mostReason is the most bytes of the text of an error. In JSON a byte takes up to six, as in \u003c, so the
// answer stays below defaultBytes.
const mostReason = 1200

// failure returns the answer that says what is wrong with a call.
func failure(reason string) *mcp.CallToolResult {
	reason = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(reason, "?"))
	return &mcp.CallToolResult{IsError: true,
		Content: []mcp.Content{&mcp.TextContent{Text: (&cutter{text: mostReason}).cut(reason)}}}
}

// cut returns a text, or its beginning and how long it is.
func (c *cutter) cut(s string) string {
	if c.text == 0 || len(s) <= c.text {
		return s
	}
	end := c.text
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s… [cut: %d of %d bytes]", s[:end], end, len(s))
}

// list returns as many texts as there may be, and how many are left out.
func (c *cutter) list(all []string) ([]string, int) {
	n := len(all)
	if c.entries > 0 {
		n = min(n, c.entries)
	}
	out := make([]string, n)
	for i := range out {
		out[i] = c.cut(all[i])
	}
	return out, len(all) - n
}

// fields returns as many fields as there may be, in the order of their names, and how many are left out.
func (c *cutter) fields(all map[string]any) (map[string]any, int) {
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if c.entries > 0 && len(out) == c.entries {
			break
		}
		out[c.cut(name)] = c.value(all[name])
	}
	return out, len(all) - len(out)
}

// value returns a value of a field for JSON.
func (c *cutter) value(v any) any {
	switch v := v.(type) {
	case string:
		return c.cut(v)
	case time.Time:
		return v.Format(time.RFC3339Nano)
	}
	return v
}

// parts are what an item of an answer has besides its key.
type parts struct {
	Labels      []string       `json:"labels,omitempty"`
	LabelsLeft  int            `json:"labels_left_out,omitempty"`
	Fields      map[string]any `json:"fields,omitempty"`
	FieldsLeft  int            `json:"fields_left_out,omitempty"`
	Text        string         `json:"text,omitempty"` // a payload that is text
	PayloadType string         `json:"payload_type,omitempty"`
	PayloadSize int            `json:"payload_bytes,omitempty"` // of one that is not
}

// newParts returns the parts of an item; nil has none.
func (c *cutter) newParts(it *db.Item) (p parts) {
	if it == nil {
		return p
	}
	p.Labels, p.LabelsLeft = c.list(it.Labels)
	p.Fields, p.FieldsLeft = c.fields(it.Fields)
	switch {
	case len(it.Payload) == 0:
	case isText(it.Payload):
		p.Text = c.cut(string(it.Payload))
	default:
		p.PayloadType, p.PayloadSize = http.DetectContentType(it.Payload), len(it.Payload)
	}
	return p
}

// isText reports whether a payload is text that people read.
func isText(b []byte) bool {
	return utf8.Valid(b) && !slices.ContainsFunc(b, func(x byte) bool {
		return x < ' ' && x != '\n' && x != '\r' && x != '\t'
	})
}

// pictures are the types of payloads that assistants can look at.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// pictureOf returns the payload of an item as a picture, nil if it is none.
func pictureOf(it *db.Item) *mcp.ImageContent {
	if kind := http.DetectContentType(it.Payload); slices.Contains(pictures, kind) {
		return &mcp.ImageContent{Data: it.Payload, MIMEType: kind}
	}
	return nil
}

// finite returns a similarity for JSON, nil where there is none.
func finite(x float32) *float32 {
	if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return &x
}
