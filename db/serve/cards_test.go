package serve

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/rest"
)

const (
	png    = "\x89PNG\r\n\x1a\n and more"
	svg    = `<?xml version="1.0"?><!-- a --><svg xmlns="http://www.w3.org/2000/svg"></svg>`
	script = "<html><script>alert(1)</script></html>"
)

// main serves a database with a collection main of the modality x, with 8 dimensions, and a field title.
func mainServer(t *testing.T, opt Options, items ...*db.Item) *Server {
	t.Helper()
	s, d := testServer(t, opt)
	c, err := d.CreateCollection(t.Context(), "main", db.Schema{
		Modalities: []db.Modality{{Name: "x", Dim: 8}},
		Fields:     []db.Field{{Name: "title", Type: db.String}}})
	for _, it := range items {
		if err == nil {
			_, err = c.Put(t.Context(), it)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// post asks for something of the collection main, and decodes the answer.
func post[O any](t *testing.T, h http.Handler, verb string, body any) O {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	w := ask(h, "POST", "/v1/photos/collections/main:"+verb, "", string(b))
	var out O
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s %s: %d %s, %v", verb, b, w.Code, w.Body, err)
	}
	return out
}

// A Pictures whose files are those of keys.
type files map[string]string

func (f files) Find(it *db.Item) string {
	if f[it.Key] == "" {
		return ""
	}
	return it.Key
}

func (f files) Read(name string) ([]byte, error) {
	if f[name] == "gone" {
		return nil, errors.New("it is gone")
	}
	return []byte(f[name]), nil
}

// A card says what kind of payload and picture an item has. These are sent so that they can do nothing.
func TestCards(t *testing.T) {
	long := "x" + strings.Repeat("ü", shownText)
	dataURL := func(s string) string {
		return "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(s))
	}
	titled := func(title string) db.Item { return db.Item{Fields: map[string]any{"title": title}} }
	for key, c := range map[string]struct {
		item                        db.Item
		payload, picture, kind, mid string
	}{
		"png":     {db.Item{Payload: []byte(png)}, "image/png", "media?version=", "image/png", ""},
		"svg/ü?":  {db.Item{Payload: []byte(svg)}, svgType, "media?version=", svgType, ""},
		"text":    {db.Item{Payload: []byte("a text")}, plainText, "", plainText, "a text"},
		"long":    {db.Item{Payload: []byte(long)}, plainText, "", plainText, long[:shownText-1] + "…"},
		"html":    {db.Item{Payload: []byte(script)}, plainText, "", plainText, script},
		"bytes":   {db.Item{Payload: []byte{0, 1}}, octets, "", octets, ""},
		"nothing": {db.Item{}, "", "", "", ""},
		"field":   {titled(dataURL(png)), "", "media?field=title&version=", "image/png", ""},
		"field text": {titled("data:image/svg+xml," + url.PathEscape(svg)),
			"", "media?field=title&version=", svgType, ""},
		"lie":          {titled(dataURL(script)), "", "", "", ""},
		"broken":       {titled("data:image/png;base64,!!!"), "", "", "", ""},
		"elsewhere":    {titled("https://example.org/a.png"), "", "", "", ""},
		"file.png":     {db.Item{}, "", "media?file=true", "image/png", ""},
		"gone.png":     {db.Item{}, "", "media?file=true", "", ""},
		"a b\n<c>&'\"": {db.Item{Payload: []byte(png)}, "image/png", "media?version=", "image/png", ""},
	} {
		it := c.item
		it.Key, it.Labels = key, []string{"label"}
		it.Vectors = map[string][]float32{"x": make([]float32, 8)}
		s := mainServer(t, Options{Pictures: files{"file.png": png, "gone.png": "gone"}}, &it)
		cards := post[rest.Cards](t, s, "cards", rest.CardQuery{Keys: []string{"nobody", key}})
		if len(cards.Cards) != 1 {
			t.Fatalf("%q: %+v", key, cards)
		}
		card := cards.Cards[0]
		if card.Key != key || card.PayloadType != c.payload || card.PayloadBytes != len(it.Payload) ||
			!strings.HasPrefix(card.Picture, c.picture) || (card.Picture == "") != (c.picture == "") ||
			card.Text != c.mid ||
			!slices.Equal(card.Modalities, []string{"x"}) || !slices.Equal(card.Labels, it.Labels) {
			t.Errorf("%q: %+v", key, card)
		}
		whole := post[rest.Cards](t, s, "cards", rest.CardQuery{Keys: []string{key}, Whole: true})
		if key == "long" && whole.Cards[0].Text != long {
			t.Errorf("%d bytes of the whole text", len(whole.Cards[0].Text))
		}
		path := card.Picture
		if path == "" {
			path = "media"
		}
		w := ask(s, "GET", "/v1/photos/collections/main/items/"+url.PathEscape(key)+"/"+path, "", "")
		h := w.Header()
		if (w.Code == http.StatusOK) != (c.kind != "") || c.kind != "" && (h.Get("Content-Type") != c.kind ||
			!strings.HasPrefix(h.Get("Content-Security-Policy"), "sandbox; default-src 'none'") ||
			h.Get("X-Content-Type-Options") != "nosniff" ||
			(h.Get("Content-Disposition") == "attachment") != (c.kind == svgType || c.kind == octets)) {
			t.Errorf("%q: %d %v %s", key, w.Code, h, w.Body)
		}
	}
}

// Without keys there are the first items that match, or random ones for each seed, and their number.
func TestCardsOfAFilter(t *testing.T) {
	var items []*db.Item
	for i := range 50 {
		items = append(items, &db.Item{Key: fmt.Sprintf("%02d", i), Labels: []string{fmt.Sprint(i % 2)}})
	}
	s := mainServer(t, Options{}, items...)
	keys := func(q rest.CardQuery) (keys []string) {
		got := post[rest.Cards](t, s, "cards", q)
		for _, c := range got.Cards {
			keys = append(keys, c.Key)
		}
		if got.Total != 25 {
			t.Errorf("%d match", got.Total)
		}
		return keys
	}
	q := rest.CardQuery{Where: "label = ?", Args: rest.Args{"1"}, Limit: 3}
	if got := keys(q); !slices.Equal(got, []string{"01", "03", "05"}) {
		t.Errorf("the first are %q", got)
	}
	q.Seed = new(uint64)
	one := keys(q)
	if again := keys(q); !slices.Equal(one, again) || len(one) != 3 {
		t.Errorf("%q, and then %q", one, again)
	}
	*q.Seed = 1
	if other := keys(q); slices.Equal(one, other) {
		t.Errorf("for another seed also %q", other)
	}
}

// Nothing gets a type that a browser would run.
func FuzzSniff(f *testing.F) {
	for _, seed := range []string{png, svg, script, "a text", "<!doctype svg><svg>", "%PDF-1.4",
		"\uFEFF<svg/>"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		switch kind := sniff(b); kind {
		case "image/png", "image/jpeg", "image/gif", "image/webp", octets:
		case svgType, plainText:
			if bytes.ContainsRune(b, 0) {
				t.Errorf("%q is no text, but %s", b, kind)
			}
		default:
			t.Errorf("%q is %s", b, kind)
		}
		if kind := PictureType(b); kind != "" && !slices.Contains(pictureTypes, kind) {
			t.Errorf("%q is a picture of type %s", b, kind)
		}
	})
}

// A slowEncoder makes vectors of main/x. It stands still at the text "wait" until its context ends.
type slowEncoder struct{ waiting chan struct{} }

func (slowEncoder) Modalities(_, collection string, input db.EncoderInput) []string {
	if collection != "main" {
		return nil
	}
	return []string{"x"}
}

func (e slowEncoder) Encode(ctx context.Context, of Encoding, content []byte) ([]float32, *db.Sparse, error) {
	switch string(content) {
	case "wait":
		e.waiting <- struct{}{}
		<-ctx.Done()
		return nil, nil, ctx.Err()
	case "fail":
		return nil, nil, fmt.Errorf("%w: no memory", ErrEncoder)
	case "many":
		return nil, nil, ErrOverloaded
	}
	x := make([]float32, of.Dim)
	x[len(content)%of.Dim] = 1
	return x, nil, nil
}

// A text is searched for by its vector.
func TestTexts(t *testing.T) {
	var items []*db.Item
	for i := range 8 {
		x := make([]float32, 8)
		x[i] = 1
		items = append(items, &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"x": x}})
	}
	e := slowEncoder{make(chan struct{}, 100)}
	s := mainServer(t, Options{Encoder: e, Requests: 1, Timeout: time.Hour}, items...)
	for _, from := range []string{"", "x"} {
		got := post[db.Result](t, s, "search", rest.Query{Text: "four", From: from, K: 1})
		if got.Hits[0].Key != "4" {
			t.Errorf("four is %+v", got)
		}
	}
	if got := post[rest.Embedded](t, s, "embed", rest.Embedding{File: []byte("1")}); got.From != "x" ||
		got.Vector.Dense[1] != 1 {
		t.Errorf("%+v", got)
	}
	for body, want := range map[string]struct {
		status int
		text   string
	}{
		`{"text":"fail"}`:                                {502, "encoder has failed: no memory"},
		`{"text":"many"}`:                                {429, "overloaded"},
		`{"text":"a","from":"y"}`:                        {400, `from: \"y\": the encoders of texts are for x`},
		`{"text":" \n"}`:                                 {400, "blank"},
		`{"text":"a","facet_limit":-1}`:                  {400, "facet_limit"},
		`{"text":"a","vector":[1]}`:                      {400, "one of vector, key, code and text"},
		`{"text":"` + strings.Repeat("a", 17<<10) + `"}`: {413, "16384 are possible"},
	} {
		w := ask(s, "POST", "/v1/photos/collections/main:search", "", body)
		if w.Code != want.status || !strings.Contains(w.Body.String(), want.text) {
			t.Errorf("%.60s: %d %s", body, w.Code, w.Body)
		}
	}
	// Programs that stand still delay nobody else, and end with the server.
	ended := make(chan int, 8)
	for range 8 {
		go func() {
			r := httptest.NewRequest("POST", "/v1/photos/collections/main:search",
				strings.NewReader(`{"text":"wait"}`))
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			ended <- w.Code
		}()
	}
	for range 8 {
		<-e.waiting
	}
	if got := post[rest.Count](t, s, "count", rest.Filter{}); got.Count != 8 {
		t.Errorf("%+v", got)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	for range 8 {
		if code := <-ended; code != http.StatusServiceUnavailable {
			t.Errorf("at the end of the server: %d", code)
		}
	}
}

// Without an encoder a text is the labels that it names, as one label or a label a word.
func TestTextsAreLabels(t *testing.T) {
	s, d := testServer(t, Options{})
	c, err := d.CreateCollection(t.Context(), "main", db.Schema{
		Modalities: []db.Modality{{Name: "x", Dim: 8}}})
	if err != nil {
		t.Fatal(err)
	}
	kinds := []string{"red", "green apple", "blue"}
	for i := range 60 {
		it := &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"x": make([]float32, 8)}}
		it.Vectors["x"][i%3], it.Vectors["x"][7] = 1, float32(i)/100
		if i < 45 {
			it.Labels = kinds[i%3 : i%3+1]
		}
		if _, err := c.Put(t.Context(), it); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Train(t.Context(), db.TrainOptions{}); err != nil {
		t.Fatal(err)
	}
	got := post[db.Result](t, s, "search", rest.Query{Text: " green apple ", From: "x", K: 20})
	for i, hit := range got.Hits {
		if n, _ := strconv.Atoi(hit.Key); n%3 != 1 {
			t.Errorf("hit %d is %s", i, hit.Key)
		}
	}
	both := post[rest.Embedded](t, s, "embed", rest.Embedding{Text: "blue red"})
	code, _, err := c.Encode(&db.Item{Labels: []string{"red", "blue"}})
	if err != nil || !bytes.Equal(both.Code, code) || len(got.Hits) != 20 {
		t.Errorf("%x and %x, %v, %d hits", both.Code, code, err, len(got.Hits))
	}
	for body, want := range map[string]string{
		`{"text":"green"}`:          `\"green\" is no label that collection \"main\" has learned`,
		`{"text":"red","from":"y"}`: `from: unknown modality \"y\"`,
	} {
		w := ask(s, "POST", "/v1/photos/collections/main:search", "", body)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}

// A map keeps apart what differs, places many of one code around one place, and is the same for one seed.
func TestMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var items []*db.Item
	for i := range 300 {
		x := make([]float32, 8)
		for j := range x {
			x[j] = float32(random.NormFloat64()) / 20
		}
		x[i%3] += 1
		items = append(items, &db.Item{Key: fmt.Sprint(i), Labels: []string{fmt.Sprint("label ", i%3)},
			Vectors: map[string][]float32{"x": x}})
	}
	items = append(items, &db.Item{Key: "without"})
	s := mainServer(t, Options{}, items...)
	m := post[rest.Map](t, s, "map", rest.MapQuery{})
	if m.By != "x" || len(m.Keys) != 300 || m.Total != 301 || len(m.Labels) != 3 ||
		!(m.Shown > .5 && m.Shown <= 1) {
		t.Fatalf("%s, %d keys of %d, %q, %v", m.By, len(m.Keys), m.Total, m.Labels, m.Shown)
	}
	far := func(i, j int) float64 {
		return math.Hypot(float64(m.X[i]-m.X[j]), float64(m.Y[i]-m.Y[j]))
	}
	for i := range m.Keys {
		if !(m.X[i] >= -1 && m.X[i] <= 1 && m.Y[i] >= -1 && m.Y[i] <= 1) {
			t.Fatalf("%s is at %v, %v", m.Keys[i], m.X[i], m.Y[i])
		}
		near := -1
		for j := range m.Keys {
			if j != i && (near < 0 || far(i, j) < far(i, near)) {
				near = j
			}
		}
		if m.Label[i] != m.Label[near] {
			t.Errorf("%s of %s is next to %s", m.Keys[i], m.Labels[m.Label[i]], m.Labels[m.Label[near]])
		}
	}
	if again := post[rest.Map](t, s, "map", rest.MapQuery{}); !slices.Equal(again.X, m.X) ||
		!slices.Equal(again.Keys, m.Keys) {
		t.Error("the map is another one now")
	}
	few := post[rest.Map](t, s, "map", rest.MapQuery{Limit: 7, Where: "label = 'label 1'"})
	if len(few.Keys) != 7 || few.Total != 100 || !slices.Equal(few.Labels, []string{"label 1"}) {
		t.Errorf("%+v", few)
	}
	// Numbers near the ends of float32 are drawn, too.
	for _, size := range []float32{1e37, 1e-37} {
		var odd []*db.Item
		for i, it := range items[:99] {
			x := make([]float32, 8)
			for j := range x {
				x[j] = it.Vectors["x"][j] * size
			}
			odd = append(odd, &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"x": x}})
		}
		got := post[rest.Map](t, mainServer(t, Options{}, odd...), "map", rest.MapQuery{})
		if got.Shown < .5 {
			t.Errorf("of numbers near %v: %v is shown", size, got.Shown)
		}
	}
	none := post[rest.Map](t, s, "map", rest.MapQuery{Where: "label = 'nobody'"})
	if none.Keys == nil || len(none.Keys) != 0 {
		t.Errorf("%+v", none)
	}

	// All items of the collection open have one code.
	s, d := testServer(t, Options{})
	c, err := d.Collection("open")
	for i := range 99 {
		if err == nil {
			_, err = c.Put(t.Context(), &db.Item{Key: fmt.Sprint(i), Code: []byte{1, 2}})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	w := ask(s, "POST", "/v1/photos/collections/open:map", "", "{}")
	places := map[[2]float32]bool{}
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	for i := range m.Keys {
		places[[2]float32{m.X[i], m.Y[i]}] = true
	}
	if len(places) != 100 {
		t.Errorf("100 items of one code are at %d places", len(places))
	}
}

// Far items do not pile up at the border of a map, and a disc at the border is not cut.
func TestMapOfOutliers(t *testing.T) {
	var x []float32
	for i := range 1000 {
		x = append(x, float32(i%100)/100)
	}
	far := []float32{10, 30, 100, 300, 1000}
	x = append(x, far...)
	fit(x)
	got := x[len(x)-len(far):]
	for i, v := range got {
		if i > 0 && v < got[i-1]+.01 || v > 1 {
			t.Errorf("far items are at %v", got)
		}
	}
	if most := slices.Max(x[:1000]); most < .7 || most > .9 {
		t.Errorf("the others are within %v", most)
	}

	x, y := make([]float32, 200), make([]float32, 200)
	for i := range x {
		x[i] = .999
	}
	spread(x, y)
	slices.Sort(x)
	if n := len(slices.Compact(x)); n < 190 || x[n-1] > 1 {
		t.Errorf("a disc of 200 has %d different places across, up to %v", n, x[n-1])
	}
}

// The server is not ready when a database has failed.
func TestReady(t *testing.T) {
	fail := &dbkit.FailOnce{Forever: true}
	fail.Off.Store(true)
	d, err := db.Open("db", &db.Options{FS: errorfs.Wrap(vfs.NewMem(), fail)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(map[string]api.Database{"photos": api.Folder(d, nil)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.CreateCollection(t.Context(), "main", db.Schema{Bits: 8})
	if err != nil {
		t.Fatal(err)
	}
	if w := ask(s, "GET", "/readyz", "", ""); w.Code != http.StatusNoContent {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	s.ready.when = time.Time{} // as if a second had passed
	fail.Off.Store(false)
	for i := 0; err == nil && i < 1000; i++ {
		_, err = c.Put(t.Context(), &db.Item{Key: fmt.Sprint(i), Code: []byte{1}})
	}
	if !errors.Is(err, db.ErrFailed) && !errors.Is(err, dbkit.ErrInjected) {
		t.Fatalf("a put on a broken disk: %v", err)
	}
	if w := ask(s, "GET", "/readyz", "", ""); w.Code != http.StatusServiceUnavailable ||
		!strings.Contains(w.Body.String(), "a database does not answer") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(s, "GET", "/healthz", "", ""); w.Code != http.StatusNoContent {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	fail.Off.Store(true)
	_ = d.Close()
}
