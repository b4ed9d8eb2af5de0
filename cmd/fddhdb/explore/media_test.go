package explore

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/picture"
	"github.com/fddhdb/fddhdb/db"
)

// A payload is shown with its type, and can do nothing.
func TestMedia(t *testing.T) {
	d := sharedDatabase(t)
	s := newServer(t, d)
	for i, want := range []struct{ kind, disposition string }{
		{"image/png", ""}, {"image/svg+xml", "attachment"}, {plainText, ""}, {anyBytes, "attachment"},
	} {
		key := "item " + string(rune('0'+i))
		w := do(s, request("GET", "/api/media?key="+url.QueryEscape(key), nil))
		h := w.Header()
		if w.Code != 200 || h.Get("Content-Type") != want.kind ||
			h.Get("Content-Disposition") != want.disposition || !bytes.Equal(w.Body.Bytes(), payload(t, i)) {
			t.Errorf("%s: %d, %s, %q", key, w.Code, h.Get("Content-Type"), h.Get("Content-Disposition"))
		}
		protected(t, h)
		if csp := h.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "sandbox; default-src 'none'") {
			t.Errorf("%s: %s", key, csp)
		}
		it := get[itemForm](t, s, "/api/item?key="+url.QueryEscape(key))
		picture := strings.HasPrefix(want.kind, "image/")
		if it.PayloadType != want.kind || it.PayloadBytes != len(payload(t, i)) ||
			(it.Picture != "") != picture || (it.Text != "") != (want.kind == plainText) ||
			it.Payload != nil {
			t.Errorf("%s: %+v", key, it)
		}
		if picture {
			if w := do(s, request("GET", it.Picture, nil)); w.Header().Get("Content-Type") != want.kind {
				t.Errorf("%s: at %s there is %s", key, it.Picture, w.Header().Get("Content-Type"))
			}
		}
	}
}

// The picture of an item may be a data: URL in a field.
func TestPictureInAField(t *testing.T) {
	d, c := ownDatabase(t)
	image := payload(t, 0)
	for key, title := range map[string]string{
		"base64": "data:image/png;base64," + base64.StdEncoding.EncodeToString(image),
		"text":   "data:image/svg+xml," + url.PathEscape(svgPicture),
		"lie": "data:image/png;base64," +
			base64.StdEncoding.EncodeToString([]byte("<script>alert(1)</script>")),
		"broken": "data:image/png;base64,!!!",
		"link":   "https://example.com/a.png",
	} {
		_, err := c.Put(t.Context(), &db.Item{Key: key, Fields: map[string]any{"title": title}})
		check(t, err)
	}
	s := newServer(t, d)
	for key, want := range map[string]string{"base64": "image/png", "text": svgType, "lie": "", "broken": "",
		"link": ""} {
		it := get[itemForm](t, s, "/api/item?key="+key)
		if (it.Picture != "") != (want != "") {
			t.Errorf("%s: picture %q", key, it.Picture)
		}
		if want == "" {
			continue
		}
		if w := do(s, request("GET", it.Picture, nil)); w.Code != 200 ||
			w.Header().Get("Content-Type") != want {
			t.Errorf("%s: %d, %s", key, w.Code, w.Header().Get("Content-Type"))
		}
	}
}

// The picture of an item may be a file that a field or the key names, below the folder and nowhere else.
// It is sent as payloads are.
func TestPictureInAFile(t *testing.T) {
	dir := t.TempDir()
	inside := filepath.Join(dir, "in")
	check(t, os.Mkdir(inside, 0o777))
	for name, body := range map[string][]byte{
		"in/a.png": payload(t, 0), "in/b.svg": []byte(svgPicture),
		"in/long.svg":  []byte("<!--" + strings.Repeat("ü", 600) + "--><svg></svg>"),
		"in/page.html": []byte("<script>alert(1)</script>"), "out.png": payload(t, 0),
	} {
		check(t, os.WriteFile(filepath.Join(dir, name), body, 0o666))
	}
	d, c := ownDatabase(t)
	want := map[string]string{"a.png": "image/png", "2": "image/png", "b.svg": svgType, "page.html": "",
		"../out.png": "", "long.svg": ""}
	for key := range want {
		it := &db.Item{Key: key}
		if key == "2" {
			it.Fields = map[string]any{"title": "/home/somebody/a.png"}
		}
		_, err := c.Put(t.Context(), it)
		check(t, err)
	}
	s := newServer(t, d)
	folder, err := picture.OpenFolder(inside, IsPicture)
	check(t, err)
	t.Cleanup(folder.Close)
	for _, s.opt.Pictures = range []*picture.Folder{nil, folder} {
		for key, want := range want {
			if s.opt.Pictures == nil {
				want = ""
			}
			it := get[itemForm](t, s, "/api/item?key="+url.QueryEscape(key))
			if (it.Picture != "") != (want != "") {
				t.Errorf("%s: picture %q", key, it.Picture)
			}
			w := do(s, request("GET", "/api/media?file=true&key="+url.QueryEscape(key), nil))
			if (w.Code == 200) != (want != "") || w.Code == 200 && w.Header().Get("Content-Type") != want {
				t.Errorf("%s: %d, %s", key, w.Code, w.Header().Get("Content-Type"))
			}
			protected(t, w.Header())
		}
	}
	// A file that has gone, or become something else, since it was listed is not there.
	check(t, os.WriteFile(filepath.Join(inside, "a.png"), []byte("gone"), 0o666))
	if w := do(s, request("GET", "/api/media?file=true&key=a.png", nil)); w.Code != 404 {
		t.Errorf("%d", w.Code)
	}
}

// Nothing gets a type that a browser would run.
func FuzzSniff(f *testing.F) {
	for i := range 4 {
		f.Add(payload(f, i))
	}
	f.Add([]byte("<html><script>"))
	f.Add([]byte("<!doctype svg><svg>"))
	f.Add([]byte("%PDF-1.4"))
	f.Fuzz(func(t *testing.T, b []byte) {
		switch kind := sniff(b); kind {
		case "image/png", "image/jpeg", "image/gif", "image/webp", anyBytes:
		case svgType, plainText:
			if !isText(b) {
				t.Errorf("%q is no text, but %s", b, kind)
			}
		default:
			t.Errorf("%q is %s", b, kind)
		}
		if kind := pictureType(b); kind != "" && !slices.Contains(shown, kind) {
			t.Errorf("%q is a picture of type %s", b, kind)
		}
	})
}

const readVariable = "FDDHDB_TEST_READING"

// actAsEncoderOfFiles is an encoder. Its vector of a file has the size of the file in units of 64 bytes,
// zeros, and how many files it has read. Where the last bytes of a file are a command, such as leave, it does
// that instead. Before it is silent it makes the file that readVariable names.
func actAsEncoderOfFiles() {
	asked := 0
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		asked++
		b, err := os.ReadFile(in.Text())
		switch {
		case err != nil || !filepath.IsAbs(in.Text()):
			fmt.Printf("{\"error\":%q}\n", fmt.Sprint("cannot read ", in.Text()))
		case bytes.HasSuffix(b, []byte("refuse")):
			fmt.Printf("{\"error\":%q}\n", in.Text()+" is too dark")
		case bytes.HasSuffix(b, []byte("leave")):
			fmt.Fprintln(os.Stderr, "no memory for", in.Text())
			os.Exit(3)
		case bytes.HasSuffix(b, []byte("be silent")):
			_ = os.WriteFile(os.Getenv(readVariable), nil, 0o600) // where that fails, the test waits forever
		default:
			fmt.Printf("%g,0,0,0,0,0,0,%d\n", float32(len(b))/64, asked)
		}
	}
}

// fileEncoder returns an encoder of pictures for the modality image of main.
func fileEncoder(t *testing.T, timeout time.Duration) encoder.Stored {
	t.Helper()
	program, err := os.Executable()
	check(t, err)
	t.Setenv(encoderVariable, "files")
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	p := encoder.Program{Modality: "image", Command: []string{program}, Timeout: cmp.Or(timeout, time.Hour)}
	return encoder.Stored{Program: p, Collection: "main", Input: db.InputFile}
}

func sendPicture(t *testing.T, s *Server, name string, body []byte) pictureForm {
	t.Helper()
	w := do(s, request("POST", "/api/uploads?name="+url.QueryEscape(name), body))
	var form pictureForm
	if err := json.Unmarshal(w.Body.Bytes(), &form); w.Code != 200 || err != nil || form.Picture == "" {
		t.Fatalf("%s: %d: %s", name, w.Code, w.Body)
	}
	return form
}

// A search by a picture has the answer of a search by the vector that the program prints for its
// file. It is encoded once for all that the page asks, and shown as it was sent.
func TestSearchByPicture(t *testing.T) {
	s := newServer(t, sharedDatabase(t), fileEncoder(t, 0))
	body := payload(t, 0)
	sent := sendPicture(t, s, "folder/my cat.jpg", body) // the bytes count, not the name
	c, err := s.db.Collection("main")
	check(t, err)
	want, err := c.Search(t.Context(), db.Query{From: "image", To: "text", K: 7,
		Vector: []float32{float32(len(body)) / 64, 7: 1}})
	check(t, err)
	for range 2 {
		got := get[hitsForm](t, s, "/api/search?from=image&to=text&k=7&picture="+sent.Picture)
		if len(got.Hits) != 7 || got.Query != "my cat.jpg" {
			t.Fatalf("%+v", got)
		}
		for i, h := range want.Hits {
			if got.Hits[i].Key != h.Key {
				t.Errorf("hit %d is %q, want %q", i, got.Hits[i].Key, h.Key)
			}
		}
	}
	if got := get[histogramForm](t, s,
		"/api/histogram?from=image&to=text&picture="+sent.Picture); got.Items != learnedItems {
		t.Errorf("%+v", got)
	}
	if got := get[countsForm](t, s, "/api/facets?from=image&to=text&k=7&picture="+sent.Picture); got.Facets[0].Items != 7 {
		t.Errorf("%+v", got)
	}
	w := do(s, request("GET", sent.Media, nil))
	if w.Code != 200 || w.Header().Get("Content-Type") != "image/png" || !bytes.Equal(w.Body.Bytes(), body) {
		t.Errorf("%d: %v", w.Code, w.Header())
	}
	protected(t, w.Header())
	for _, of := range get[databaseForm](t, s, "/api/database").Collections {
		if can := len(of.Pictures) == 1 && of.Pictures[0] == "image"; can != (of.Name == "main") ||
			of.Pictures == nil {
			t.Errorf("%s: pictures for %q", of.Name, of.Pictures)
		}
	}

	vectors := send(t, s, "a.csv", []byte("1,2,3,4,5,6,7,8\n"))
	for target, text := range map[string]string{
		"/api/search?from=image&upload=" + sent.Picture:    "my cat.jpg is a picture",
		"/api/search?from=image&picture=" + vectors.Upload: "a.csv is a file of vectors",
		"/api/media?picture=" + vectors.Upload:             "a.csv is a file of vectors",
		"/api/search?from=text&picture=" +
			sent.Picture: `no encoder of pictures for "text"`,
		"/api/search?collection=empty&from=image&picture=" + sent.Picture: "no encoder of pictures",
		"/api/search?from=image&key=item+1&picture=" + sent.Picture:       "this one has 2",
		"/api/search?collection=given&from=image&picture=" + sent.Picture: "bring their codes",
	} {
		refused(t, do(s, request("GET", target, nil)), 400, text)
	}
}

// What is wrong with a picture, with the program, or with its time has a status of its own, and names
// the file as the client does.
func TestSearchByPictureFails(t *testing.T) {
	s := newServer(t, sharedDatabase(t), fileEncoder(t, 300*time.Millisecond))
	for _, c := range []struct {
		end    string
		status int
		want   string
	}{
		{"refuse", 422, "the encoder of image: my cat.png is too dark"},
		{"leave", 502, "no memory for my cat.png"},
		{"", 200, ""},
		{"be silent", 504, "no vector after 300ms"},
	} {
		sent := sendPicture(t, s, "my cat.png", append(payload(t, 0), c.end...))
		w := do(s, request("GET", "/api/search?from=image&picture="+sent.Picture, nil))
		if c.status != 200 {
			refused(t, w, c.status, c.want)
		} else if w.Code != 200 {
			t.Errorf("%s: %d, %s", c.end, w.Code, w.Body)
		}
	}
}

// A picture that is too large leaves nothing.
func TestLargePicture(t *testing.T) {
	s := newServer(t, sharedDatabase(t))
	body := io.MultiReader(bytes.NewReader(payload(t, 0)), io.LimitReader(zeros{}, maxPicture))
	refused(t, do(s, httptest.NewRequest("POST", "http://"+host+"/api/uploads?name=a.png", body)), 413,
		"a picture of at most 32 MiB")
	if files, err := os.ReadDir(s.uploads.dir); err != nil || len(files) != 0 {
		t.Errorf("%d files stay, %v", len(files), err)
	}
}

// A picture stays while the program may read it, though its client has left and others have been sent,
// and no longer.
func TestPicturesGo(t *testing.T) {
	d := sharedDatabase(t)
	reading := filepath.Join(t.TempDir(), "reading")
	t.Setenv(readVariable, reading)
	s, err := New(d, newServer(t, d, fileEncoder(t, 0)).opt)
	check(t, err)
	files := func() int {
		all, err := os.ReadDir(s.uploads.dir)
		check(t, err)
		return len(all)
	}
	silent := sendPicture(t, s, "a.png", append(payload(t, 0), "be silent"...))
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		do(s, request("GET", "/api/search?from=image&picture="+silent.Picture, nil).WithContext(ctx))
		close(ended)
	}()
	for { // until the program has it
		if _, err := os.Stat(reading); err == nil {
			break
		}
		runtime.Gosched()
	}
	leave()
	for range 2 * keptUploads {
		sendPicture(t, s, "b.png", payload(t, 0))
	}
	refused(t, do(s, request("GET", silent.Media, nil)), 404, "send it again")
	if n := files(); n != keptUploads+1 {
		t.Errorf("%d files while one is read", n)
	}
	s.encoders.Close()
	<-ended
	if n := files(); n != keptUploads {
		t.Errorf("%d files when none is read", n)
	}
	check(t, s.uploads.close())
	if _, err := os.Stat(s.uploads.dir); !os.IsNotExist(err) {
		t.Errorf("the folder stays: %v", err)
	}
}
