package picture

import (
	"encoding/xml"
	"errors"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/db"
)

// A text of a stranger is text wherever it stands on a sheet: it adds no element and no attribute to those of
// a sheet of plain words.
func TestTextIsNoMarkup(t *testing.T) {
	picture := clitest.Picture(t, "a.png", 300, 10, color.Black)
	sheet := func(text string) string {
		path := filepath.Join(t.TempDir(), "a.html")
		s := clitest.Must(NewSheet(nil, path, "", text))(t)
		defer s.Close()
		hit := func(payload []byte) db.Hit {
			return db.Hit{Item: &db.Item{Key: text, Labels: []string{text}, Fields: map[string]any{"a": text},
				Payload: payload}}
		}
		if err := errors.Join(s.Add(t.Context(), text, "",
			[]db.Hit{hit(nil), hit([]byte(text)), hit(picture)}),
			s.Add(t.Context(), text, "", nil)); err != nil {
			t.Fatal(err)
		}
		clitest.Check(t, s.Commit())
		b := clitest.Must(os.ReadFile(path))(t)
		return string(b)
	}
	plain, shown := markup(t, sheet("words"))
	if words := strings.Count(shown, "words"); words != 13 || !strings.Contains(shown, "picture of words") {
		t.Errorf("the words stand %d times on the sheet", words)
	}
	for _, text := range []string{
		`<script>alert(1)</script>`, `"><script>alert(1)</script>`, `" onerror="alert(1)`,
		`' onload='alert(1)`, "` x=`",
		`</title><script>`, `</style><script>`, `<!--`, `]]>`, `&lt;b&gt;`, `&#60;b>`, `%s%d%!`, `{{.}}`,
		`<img src=x>`, "\x00<b>",
	} {
		got, shown := markup(t, sheet(text))
		if !slices.Equal(got, plain) {
			t.Errorf("%q makes other markup:\n%q, want\n%q", text, got, plain)
		}
		if n := strings.Count(shown, text); n != 13 && text[0] != 0 {
			t.Errorf("%q stands %d times on the sheet", text, n)
		}
	}
}

// markup returns the elements and attributes of a sheet, which are XML but for the doctype, and its text with
// that of attributes.
func markup(t *testing.T, sheet string) (elements []string, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(strings.ReplaceAll(sheet, "\x00", "\ufffd")))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return elements, text
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, sheet)
		}
		switch e := token.(type) {
		case xml.CharData:
			text += string(e) + "\n"
		case xml.Comment, xml.Directive, xml.ProcInst:
			elements = append(elements, "a comment or a directive")
		case xml.EndElement:
			elements = append(elements, "/"+e.Name.Local)
		case xml.StartElement:
			elements = append(elements, e.Name.Local)
			for _, a := range e.Attr {
				elements = append(elements, a.Name.Local)
				text += a.Value + "\n"
			}
		}
	}
}
