package explore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

const (
	learnedItems = 300
	givenItems   = 200
)

// shared is the database of read-only tests: a learned collection, main; one of codes
// of 32 bits, given; and an empty one.
var shared struct {
	once sync.Once
	dir  string
	d    *db.DB
}

func sharedDatabase(t testing.TB) *db.DB {
	t.Helper()
	shared.once.Do(func() {
		dir, err := os.MkdirTemp("", "fddhdb-explore-test-")
		check(t, err)
		shared.dir = dir
		d, err := db.Open(dir, nil)
		check(t, err)
		shared.d = d
		fillMain(t, d)
		fillGiven(t, d)
		_, err = d.CreateCollection(context.Background(), "empty",
			db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 8}}})
		check(t, err)
	})
	return shared.d
}

func closeShared() error {
	if shared.d == nil {
		return nil
	}
	return errors.Join(shared.d.Close(), os.RemoveAll(shared.dir))
}

// ownDatabase returns a database with a collection main, without items, for a test that
// writes.
func ownDatabase(t testing.TB) (*db.DB, *db.Collection) {
	t.Helper()
	d, err := db.Open(t.TempDir(), nil)
	check(t, err)
	t.Cleanup(func() { check(t, d.Close()) })
	return d, createMain(t, d)
}

func createMain(t testing.TB, d *db.DB) *db.Collection {
	t.Helper()
	c, err := d.CreateCollection(context.Background(), "main", db.Schema{
		Modalities: []db.Modality{{Name: "image", Dim: 8}, {Name: "text", Dim: 5}},
		Fields:     []db.Field{{Name: "year", Type: db.Int, Indexed: true}, {Name: "title", Type: db.String}},
	})
	check(t, err)
	return c
}

func fillMain(t testing.TB, d *db.DB) {
	t.Helper()
	c := createMain(t, d)
	data := synth.Pairs(synth.Config{Items: learnedItems, Seed: 1, Noise: 1})
	batch := d.NewBatch()
	for i := range learnedItems {
		it := &db.Item{
			Key:     fmt.Sprintf("item %d", i),
			Vectors: map[string][]float32{"image": data.Vectors[0][i], "text": data.Vectors[1][i]},
			Fields:  map[string]any{"year": 2000 + i%20, "title": fmt.Sprintf("title & <%d>", i)},
			Payload: payload(t, i),
		}
		for _, l := range data.Labels[i] {
			it.Labels = append(it.Labels, fmt.Sprint("label", l))
		}
		check(t, batch.Put(c, it))
	}
	check(t, batch.Commit(context.Background()))
	opt := db.TrainOptions{}
	opt.Bits, opt.Anchors, opt.Seed = 16, 50, 1
	opt.Features = map[string]model.FeatureKind{"image": model.FeaturesRaw, "text": model.FeaturesRaw}
	opt.Map = map[string]model.MapKind{"image": model.MapRBF, "text": model.MapRBF}
	opt.Gamma = map[string]float64{"image": fit.DefaultGamma, "text": fit.DefaultGamma}
	_, err := c.Train(context.Background(), opt)
	check(t, err)
	opt.Bits = 24 // space 2, which is not active
	_, err = c.Train(context.Background(), opt)
	check(t, err)
}

func fillGiven(t testing.TB, d *db.DB) {
	t.Helper()
	c, err := d.CreateCollection(context.Background(), "given", db.Schema{Bits: 32})
	check(t, err)
	r := rand.New(rand.NewPCG(3, 4))
	batch := d.NewBatch()
	for i := range givenItems {
		code := []byte{byte(r.Uint32()), byte(r.Uint32() & 3), 0, byte(r.Uint32() & 1)}
		check(t, batch.Put(c, &db.Item{Key: fmt.Sprint(i), Code: code}))
	}
	check(t, batch.Commit(context.Background()))
}

const (
	svgPicture = `<?xml version="1.0"?><!-- a picture --><svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`
	textShown  = "Some words,\nand some <b>more</b>."
)

// payload is a picture, text, bytes or nothing.
func payload(t testing.TB, i int) []byte {
	switch i {
	case 0:
		var b bytes.Buffer
		check(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 2))))
		return b.Bytes()
	case 1:
		return []byte(svgPicture)
	case 2:
		return []byte(textShown)
	case 3:
		return []byte{0, 1, 2, 0xff}
	}
	return nil
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var reported atomic.Value // the last fault, a string

func newServer(t testing.TB, d *db.DB, encoders ...encoder.Stored) *Server {
	t.Helper()
	s, err := New(d, Options{
		Name: "test.db", Version: "v1", Encoders: encoders,
		Report: func(fault string) { reported.Store(fault) },
	})
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	return s
}

const host = "127.0.0.1:7000"

func request(method, target string, body []byte) *http.Request {
	r := httptest.NewRequest(method, "http://"+host+"/", bytes.NewReader(body))
	r.URL.Path, r.URL.RawQuery, _ = strings.Cut(target, "?")
	return r
}

func do(s http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// get requests JSON and fails the test if there is none.
func get[T any](t testing.TB, s http.Handler, target string) T {
	t.Helper()
	w := do(s, request("GET", target, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d: %s", target, w.Code, w.Body)
	}
	var out T
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatalf("%s: %v: %s", target, err, w.Body)
	}
	return out
}

// refused compares an answer with the expected error.
func refused(t testing.TB, w *httptest.ResponseRecorder, status int, text string) {
	t.Helper()
	var form errorForm
	if err := json.Unmarshal(w.Body.Bytes(), &form); err != nil {
		t.Errorf("no error in JSON: %v: %.200s", err, w.Body)
		return
	}
	if w.Code != status || form.Status != status || !strings.Contains(form.Error, text) {
		t.Errorf("%d: %+v, want %d with %q", w.Code, form, status, text)
	}
}
