package command

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
)

// pictured returns a database of codes whose items have pictures in all possible
// places, and the folder of the files. All but the last are 0 bits away from the code
// 0000.
func pictured(t *testing.T) (f fixture, pictures string) {
	t.Helper()
	f = fixture{dir: t.TempDir()}
	f.db, pictures = f.path("a.db"), f.path("pictures")
	clitest.Check(t, os.MkdirAll(pictures+"/sub", 0o777))
	write := func(path string, data []byte) { clitest.WriteFile(t, path, string(data)) }
	write(pictures+"/sub/a.jpg", clitest.Picture(t, "a.jpg", 300, 100, color.RGBA{0, 0, 255, 255}))
	write(pictures+"/key.gif", clitest.Picture(t, "key.gif", 10, 10, color.RGBA{0, 200, 0, 255}))
	write(pictures+"/damaged.png", clitest.Picture(t, "a.png", 50, 50, color.Black)[:60])
	write(f.path("outside.png"), clitest.Picture(t, "a.png", 77, 77, color.Black))
	type item struct {
		Key     string         `json:"key"`
		Labels  []string       `json:"labels,omitempty"`
		Fields  map[string]any `json:"fields,omitempty"`
		Payload []byte         `json:"payload,omitempty"`
		Code    string         `json:"code"`
	}
	var lines bytes.Buffer
	for _, it := range []item{
		{Key: "payload", Labels: []string{"red", "<b>"},
			Payload: clitest.Picture(t, "a.png", 20, 40, color.RGBA{255, 0, 0, 255})},
		{Key: "field", Fields: map[string]any{"file": "https://example.org/x/sub/a.jpg?size=1"}},
		{Key: "key.gif"},
		{Key: "text", Payload: []byte("one\ntwo <script>alert(1)</script>\x1b[31m")},
		{Key: "outside", Fields: map[string]any{"file": "../outside.png"}},
		{Key: "damaged", Fields: map[string]any{"file": "damaged.png"}},
		{Key: `"><script>alert('key')</script>`, Fields: map[string]any{"file": "javascript:alert(1)"}},
		{Key: "far", Code: "ffff"},
	} {
		if it.Code == "" {
			it.Code = "0000"
		}
		line := clitest.Must(json.Marshal(it))(t)
		lines.Write(append(line, '\n'))
	}
	clitest.WriteFile(t, f.path("items.jsonl"), lines.String())
	must(t, "init", f.db, "--codes", "16", "--field", "file:string")
	must(t, "import", f.db, "--items", f.path("items.jsonl"))
	return f, pictures
}

// elements reads a sheet as XML, which our markup allows. It returns the text, and the
// pictures by their descriptions.
func elements(t *testing.T, html string) (text string, pictures map[string]image.Image, scripts int) {
	t.Helper()
	pictures = map[string]image.Image{}
	d := xml.NewDecoder(strings.NewReader(html))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return text, pictures, scripts
		}
		clitest.Check(t, err)
		switch e := token.(type) {
		case xml.CharData:
			text += string(e) + "\n"
		case xml.StartElement:
			if e.Name.Local == "script" {
				scripts++
			}
			if e.Name.Local != "img" {
				continue
			}
			attr := map[string]string{}
			for _, a := range e.Attr {
				attr[a.Name.Local] = a.Value
			}
			_, data, found := strings.Cut(attr["src"], ";base64,")
			raw, err := base64.StdEncoding.DecodeString(data)
			if !found || err != nil || !strings.HasPrefix(attr["src"], "data:image/") {
				t.Fatalf("%.60s: %v", attr["src"], err)
			}
			img, _, err := image.Decode(bytes.NewReader(raw))
			if err != nil && !strings.HasSuffix(attr["alt"], " damaged") {
				t.Fatal(err)
			}
			pictures[strings.TrimPrefix(attr["alt"], "picture of ")] = img
		}
	}
}

func TestSheetHTML(t *testing.T) {
	f, pictures := pictured(t)
	sheet := f.path("a.html")
	code, stdout, stderr := do(t, "search", f.db, "--code", "0000", "--radius", "3", "--sheet", sheet,
		"--pictures", pictures)
	if code != 0 || !strings.HasPrefix(stdout, "code 0000: 7 items within 3 bits\n") ||
		stderr != "" {
		t.Fatalf("exit code %d, %s\n%s", code, stdout, stderr)
	}
	html, err := os.ReadFile(sheet)
	clitest.Check(t, err)
	text, shown, scripts := elements(t, string(html))
	for _, want := range []string{"code 0000", "payload", "red, <b>", "0 bits",
		"one\ntwo <script>alert(1)</script>\\x1b[31m", `"><script>alert('key')</script>`,
		"file: ../outside.png"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not stand there", want)
		}
	}
	if strings.Contains(text, "far") || scripts > 0 || strings.Contains(string(html),
		"https://example.org/x/sub/a.jpg") {
		t.Errorf("what should not be there is: %s", html)
	}
	sizes := map[string]image.Point{"payload": {20, 40}, "field": {300, 100}, "key.gif": {10, 10}}
	if len(shown) != len(sizes)+1 { // with the damaged one
		t.Errorf("%d pictures", len(shown))
	}
	for key, size := range sizes {
		if img := shown[key]; img == nil || img.Bounds().Size() != size {
			t.Errorf("picture of %s: %v", key, img)
		}
	}
	r, _, b, _ := shown["field"].At(100, 40).RGBA()
	if r>>8 > 20 || b>>8 < 235 {
		t.Errorf("the blue picture has red %d and blue %d", r>>8, b>>8)
	}
	// Without the folder no file is read.
	must(t, "search", f.db, "--key", "key.gif", "-k", "2", "--sheet", sheet)
	if html, err = os.ReadFile(sheet); err != nil {
		t.Fatal(err)
	}
	text, shown, _ = elements(t, string(html))
	if len(shown) != 1 || shown["payload"] == nil || strings.Count(text, "key.gif\n") != 3 ||
		!strings.Contains(text, "the query") || strings.Count(text, "0 bits") != 2 {
		t.Errorf("%d pictures, %s", len(shown), text)
	}
}

// A card says what decided, where something did.
func TestSheetOfSimilarities(t *testing.T) {
	f := newFixture(t, 80, true)
	for order, similar := range map[string]bool{"projection": true, "none": false, "auto": true} {
		search := []string{"search", f.db, "--from", "text", "--key", "5", "-k", "3", "--rerank", order}
		must(t, append(search, "--sheet", f.path("a.html"))...)
		html := clitest.Must(os.ReadFile(f.path("a.html")))(t)
		text, _, _ := elements(t, string(html))
		want := 0
		if similar {
			want = 3
		}
		if got := strings.Count(text, "similarity "); got != want {
			t.Errorf("%s: %d similarities, want %d: %s", order, got, want, text)
		}
	}
}

// Only the query is called so, and framed, also where vectors are compared.
func TestSheetNamesTheQuery(t *testing.T) {
	f := newFixture(t, 80, false)
	for _, query := range []struct {
		args    []string
		queries int
	}{{[]string{"--key", "5"}, 1}, {[]string{"--key", "5", "--exclude-self"}, 1},
		{[]string{"--vectors", f.path("text.npy"), "--row", "5"}, 0}} {
		search := append([]string{"search", f.db, "--from", "text", "-k", "3"}, query.args...)
		must(t, append(search, "--sheet", f.path("a.html"))...)
		html := clitest.Must(os.ReadFile(f.path("a.html")))(t)
		if named, framed := strings.Count(string(html), "the query<"),
			strings.Count(string(html), `class="query"`); named != query.queries || framed != query.queries {
			t.Errorf("%q: %d cards are called the query, %d framed", query.args, named, framed)
		}
	}
}

func TestSheetErrors(t *testing.T) {
	clitest.OneGoroutine(t)
	f, pictures := pictured(t)
	search := []string{"search", f.db, "--code", "0000"}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--sheet", f.path("x.png")}, exit.Usage, "x.png: a .html file is made"},
		{[]string{"--pictures", pictures}, exit.Usage, "--pictures is for --sheet FILE"},
		{[]string{"--sheet", f.path("x.html"), "--pictures", f.path("none")}, exit.Usage,
			"--pictures " + f.path("none") + ": "},
		{[]string{"--sheet", f.path("x.html"), "--pictures", f.path("items.jsonl")}, exit.Usage,
			"items.jsonl: "},
		{[]string{"--sheet", f.db + "/x.html"}, exit.Usage, "inside the database"},
		{[]string{"--sheet", f.path("none/x.html")}, exit.Failed, "write " + f.path("none/x.html")},
	} {
		says(t, c.code, c.want, append(search, c.args...)...)
	}
	// Too many cards are refused, and leave nothing.
	rows := make([][]uint8, 200)
	for i := range rows {
		rows[i] = []uint8{0, 0}
	}
	clitest.WriteNPY(t, f.path("codes.npy"), rows)
	says(t, exit.Failed, "more than 1,000 queries and hits", "search", f.db, "--codes", f.path("codes.npy"),
		"-k", "5", "--sheet", f.path("x.html"))
	entries, err := os.ReadDir(f.dir)
	for _, entry := range entries {
		if strings.Contains(entry.Name(), "x.") {
			t.Errorf("%s is there", entry.Name())
		}
	}
	if err != nil {
		t.Error(err)
	}
}
