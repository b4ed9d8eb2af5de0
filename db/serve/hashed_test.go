package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	imagepng "image/png"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fddhdb/fddhdb/codec/perceptual"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// decodeSmall is an Options.Decode.
func decodeSmall(from io.ReadSeeker) (image.Image, error) {
	m, _, err := image.Decode(from)
	return m, err
}

// hashedServer serves a collection whose codes are by a hash.
func hashedServer(t *testing.T, hash string, opt Options) (*Server, *db.Collection) {
	t.Helper()
	s, d := testServer(t, opt)
	bits := 64
	if h := perceptual.Named(hash); h != nil {
		bits = h.Bits
	}
	c, err := d.CreateCollection(t.Context(), "main", db.Schema{Bits: bits, Hash: hash})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// slope returns a picture that is brighter to the right, and the bytes of its PNG.
func slope(t *testing.T) (image.Image, []byte) {
	t.Helper()
	m := image.NewGray(image.Rect(0, 0, 90, 80))
	for x := range 90 {
		for y := range 80 {
			m.SetGray(x, y, color.Gray{uint8(2*x + y*y/90)})
		}
	}
	var b bytes.Buffer
	if err := imagepng.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return m, b.Bytes()
}

// A picture becomes its code, and so a query.
func TestPicturesAreHashed(t *testing.T) {
	s, c := hashedServer(t, "dhash", Options{Decode: decodeSmall})
	m, file := slope(t)
	if _, err := c.Put(t.Context(), &db.Item{Key: "slope", Code: perceptual.DHash(m)}); err != nil {
		t.Fatal(err)
	}
	made := post[rest.Embedded](t, s, "embed", rest.Embedding{File: file})
	if !bytes.Equal(made.Code, perceptual.DHash(m)) || made.From != "" || !made.Vector.IsZero() {
		t.Errorf("%+v", made)
	}
	if got := post[db.Result](t, s, "search", made); len(got.Hits) != 1 || got.Hits[0].Distance != 0 {
		t.Errorf("%+v", got)
	}
	var shown rest.Collection
	if err := json.Unmarshal(ask(s, "GET", "/v1/photos/collections/main", "", "").Body.Bytes(),
		&shown); err != nil || shown.Hashed != db.InputFile || shown.Near != 4 {
		t.Errorf("%+v: %v", shown, err)
	}
	for text, in := range map[string]rest.Embedding{
		"file: unexpected EOF":        {File: file[:40]},
		"file: image: unknown format": {File: []byte("no picture")},
		"makes none of texts":         {Text: "words"},
	} {
		body, _ := json.Marshal(in)
		w := ask(s, "POST", "/v1/photos/collections/main:embed", "", string(body))
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), text) {
			t.Errorf("%s: %d %s", text, w.Code, w.Body)
		}
	}
}

// A text is searched for by its code, however long it is.
func TestTextsAreHashed(t *testing.T) {
	s, c := hashedServer(t, "simhash", Options{})
	long := strings.Repeat("a page of many words that one reads ", 1000)
	for key, text := range map[string]string{"short": "a few words alone", "long": long} {
		if _, err := c.Put(t.Context(), &db.Item{Key: key, Code: perceptual.SimHash(text)}); err != nil {
			t.Fatal(err)
		}
	}
	got := post[db.Result](t, s, "search", rest.Query{Text: long, K: 1})
	if len(got.Hits) != 1 || got.Hits[0].Key != "long" || got.Hits[0].Distance != 0 {
		t.Errorf("%+v", got)
	}
	code := post[rest.Code](t, s, "encode", rest.Encoding{Text: long})
	if !bytes.Equal(code.Code, perceptual.SimHash(long)) {
		t.Errorf("%+v", code)
	}
	w := ask(s, "POST", "/v1/photos/collections/main:embed", "", `{"file":"AAEC"}`)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "makes none of files") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A server makes no codes by a hash that it does not know, and none of pictures without a decoder.
func TestUnknownHashes(t *testing.T) {
	for hash, text := range map[string]string{"mine": "are by mine", "pdq": "are by pdq"} {
		s, _ := hashedServer(t, hash, Options{})
		w := ask(s, "POST", "/v1/photos/collections/main:embed", "", `{"file":"AAEC"}`)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), text) {
			t.Errorf("%s: %d %s", hash, w.Code, w.Body)
		}
	}
}

// However many pictures come, one at most for each processor is in memory. Those that wait take no place.
func TestFewPicturesAtATime(t *testing.T) {
	most := runtime.GOMAXPROCS(0)
	var now atomic.Int32
	began, goOn := make(chan struct{}), make(chan struct{})
	decode := func(io.ReadSeeker) (image.Image, error) {
		if n := now.Add(1); int(n) > most {
			t.Errorf("%d pictures at a time", n)
		}
		defer now.Add(-1)
		began <- struct{}{}
		<-goOn
		return nil, errors.New("it is refused")
	}
	s, _ := hashedServer(t, "dhash", Options{Requests: most + 1, Decode: decode})
	const rounds = 4
	ended := make(chan int)
	for range rounds * most {
		go func() {
			ended <- ask(s, "POST", "/v1/photos/collections/main:embed", "", `{"file":"AAEC"}`).Code
		}()
	}
	for range rounds {
		for range most {
			<-began
		}
		if got := post[rest.Count](t, s, "count", rest.Filter{}); got.Count != 0 {
			t.Errorf("%+v", got)
		}
		for range most {
			goOn <- struct{}{}
		}
		for range most {
			if code := <-ended; code != http.StatusBadRequest {
				t.Errorf("status %d", code)
			}
		}
	}
}
