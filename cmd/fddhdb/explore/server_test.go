package explore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/report"
)

// The first request returns the contents of the database, and an item has the form of
// get.
func TestForms(t *testing.T) {
	d := sharedDatabase(t)
	s := newServer(t, d, encoder.Stored{Program: encoder.Program{Modality: "text", Command: []string{"true"}},
		Collection: "main", Input: db.InputText},
		encoder.Stored{Program: encoder.Program{Modality: "image", Command: []string{"true"}},
			Collection: "main", Input: db.InputText})
	form := get[databaseForm](t, s, "/api/database")
	if form.Name != "test.db" || form.UUID != d.UUID() || len(form.Collections) != 3 {
		t.Errorf("%+v", form)
	}
	main := form.Collections[2]
	if main.Name != "main" || main.Items != learnedItems || !main.Trained || main.Space != 1 ||
		main.Spaces[0].Bits != 16 || len(main.Modalities) != 2 || len(main.Fields) != 2 {
		t.Errorf("%+v", main)
	}
	if !slices.Equal(main.Encoders, []string{"image", "text"}) || len(form.Collections[0].Encoders) != 0 {
		t.Errorf("encoders %q, %q", main.Encoders, form.Collections[0].Encoders)
	}
	if empty := form.Collections[0]; empty.Trained || len(empty.Spaces) != 0 {
		t.Errorf("%+v", empty)
	}
	if stats := get[db.Stats](t, s, "/api/stats"); stats.Items != learnedItems+givenItems ||
		len(stats.Collections) != 3 {
		t.Errorf("%+v", stats)
	}
	if all := get[struct{ Collections []db.CollectionStats }](t, s, "/api/collections"); len(
		all.Collections) != 3 || all.Collections[1].Bits != 32 {
		t.Errorf("%+v", all)
	}
	if models := get[struct{ Spaces []report.SpaceInfo }](t, s, "/api/models"); len(models.Spaces) != 2 ||
		models.Spaces[0].Training == nil {
		t.Errorf("%+v", models)
	}
	if models := get[struct{ Spaces []report.SpaceInfo }](t, s,
		"/api/models?collection=empty"); models.Spaces == nil || len(models.Spaces) > 0 {
		t.Errorf("%+v", models)
	}
	labels := get[struct {
		Labels []string
		Total  int
	}](t, s, "/api/labels?limit=2")
	if labels.Total != 4 || len(labels.Labels) != 2 {
		t.Errorf("%+v", labels)
	}
	item := get[map[string]any](t, s, "/api/item?key=item+5&vectors=true")
	if fields := item["fields"].(map[string]any); fields["year"] != 2005.0 ||
		fields["title"] != "title & <5>" || len(item["vectors"].(map[string]any)["image"].([]any)) != 8 {
		t.Errorf("%v", item)
	}
	list := get[listForm](t, s, "/api/items?limit=3&where=year+%3D+2001")
	items := list.Items
	if list.Total != learnedItems/20 {
		t.Errorf("%d items match", list.Total)
	}
	if len(items) != 3 || items[0].Key != "item 1" || items[1].Key != "item 21" || items[0].Vectors != nil ||
		strings.Join(items[0].Modalities, " ") != "image text" {
		t.Errorf("%v", items)
	}
}

// A sample is of the items that match, others by another seed, and all where there are few.
func TestSample(t *testing.T) {
	s := newServer(t, sharedDatabase(t))
	list := func(query string) (keys []string) {
		for _, it := range get[listForm](t, s, "/api/items?"+query).Items {
			keys = append(keys, it.Key)
		}
		return keys
	}
	one, two := list("sample=1&limit=20"), list("sample=2&limit=20")
	if len(one) != 20 || slices.Equal(one, two) || !slices.Equal(one, list("sample=1&limit=20")) ||
		slices.Equal(one, list("limit=20")) {
		t.Errorf("%q, %q", one, two)
	}
	const where = "where=year+%3D+2001&limit=100"
	if some, all := list(where+"&sample=0"), list(where); len(all) != learnedItems/20 ||
		!slices.Equal(some, all) {
		t.Errorf("%q of %q", some, all)
	}
}

// Long texts are cut in lists, between two characters, and whole in the item.
func TestShortened(t *testing.T) {
	d, c := ownDatabase(t)
	long := "x" + strings.Repeat("ü", shownText)
	_, err := c.Put(t.Context(), &db.Item{Key: "long", Fields: map[string]any{"year": 1900, "title": long},
		Payload: []byte(long)})
	check(t, err)
	s := newServer(t, d)
	it := get[struct{ Items []itemForm }](t, s, "/api/items?where=year+%3D+1900").Items[0]
	want := long[:shownText-1] + "…"
	if !it.Shortened || it.Text != want || it.Fields["title"] != want {
		t.Errorf("%v, %d bytes, %v", it.Shortened, len(it.Text), it.Fields)
	}
	if it := get[itemForm](t, s, "/api/item?key=long"); it.Shortened || it.Text != long ||
		it.Fields["title"] != long {
		t.Errorf("%v, %d bytes", it.Shortened, len(it.Text))
	}
}

// A request that comes when all places are taken waits. One that comes when too many
// wait is refused.
func TestTooMany(t *testing.T) {
	s := newServer(t, sharedDatabase(t))
	for range cap(s.computing.places) {
		s.computing.places <- struct{}{}
	}
	answered := make(chan int)
	for range maxWaiting {
		go func() { answered <- do(s, request("GET", "/api/database", nil)).Code }()
	}
	for s.computing.waiting.Load() < maxWaiting {
		select {
		case code := <-answered:
			t.Fatalf("answered with %d while all are busy", code)
		default:
		}
	}
	w := do(s, request("GET", "/api/database", nil))
	refused(t, w, 503, "too many requests")
	if w.Header().Get("Retry-After") == "" {
		t.Error("when to ask again is missing")
	}
	for range cap(s.computing.places) {
		<-s.computing.places
	}
	for range maxWaiting {
		if code := <-answered; code != 200 {
			t.Errorf("who has waited gets %d", code)
		}
	}
	if len(s.computing.places) != 0 || s.computing.waiting.Load() != 0 {
		t.Errorf("%d at work, %d waiting, when all are answered", len(s.computing.places),
			s.computing.waiting.Load())
	}
}

// A server answers until its context ends, and a panic gives an answer, too.
func TestServe(t *testing.T) {
	s := newServer(t, sharedDatabase(t))
	s.api["/api/panic"] = endpoint{compute: func(context.Context, url.Values) (any, error) { panic("oops") }}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, l) }()
	base := "http://" + l.Addr().String()
	for at, want := range map[string]int{"/": 200, "/api/database": 200, "/api/panic": 500,
		"/api/nothing": 404} {
		resp, err := http.Get(base + at)
		check(t, err)
		check(t, resp.Body.Close())
		if resp.StatusCode != want {
			t.Errorf("%s: %s", at, resp.Status)
		}
	}
	if fault, _ := reported.Load().(string); !strings.Contains(fault, "/api/panic: oops") {
		t.Errorf("reported %q", fault)
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the end: %v", err)
	}
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("it still listens: %v", err)
	}
}

// Any request gets JSON, and no fault of the server.
func FuzzRequest(f *testing.F) {
	s := newServer(f, sharedDatabase(f))
	paths := []string{"/api/search", "/api/histogram", "/api/items", "/api/item", "/api/plans", "/api/labels",
		"/api/models", "/api/stats"}
	for i, q := range []string{
		"key=item+3&from=image&to=text&k=7&radius=3&items=true", "code=0ff0&radius=16&explain=1",
		"where=year+%3E+2001&limit=3", "key=item+1&vectors=true",
		"to=text", "limit=1", "collection=given", "", "key=item+3&rerank=asymmetric&from=text&k=30",
		"key=item+3&after=AAECAwQ", "text=x&from=text", "upload=x&row=1", "picture=x&from=image",
	} {
		f.Add(i, q)
	}
	f.Fuzz(func(t *testing.T, at int, query string) {
		at %= len(paths)
		if at < 0 {
			at += len(paths)
		}
		w := do(s, request("GET", paths[at]+"?"+query, nil))
		if !json.Valid(w.Body.Bytes()) || w.Code != 200 && (w.Code < 400 || w.Code > 499) {
			t.Errorf("%s?%q: %d: %s", paths[at], query, w.Code, bytes.TrimSpace(w.Body.Bytes()))
		}
	})
}

// UnmarshalJSON undoes MarshalJSON.
func (f *itemForm) UnmarshalJSON(b []byte) error {
	return errors.Join(json.Unmarshal(b, &f.Item), json.Unmarshal(b, &f.shownOf))
}

// Only requests to this machine by its own name, and not on behalf of another site, are
// answered.
func TestForeignRequests(t *testing.T) {
	s := newServer(t, sharedDatabase(t))
	for _, c := range []struct {
		host, site, origin string
		status             int
	}{
		{host, "", "", 200},
		{host, "none", "", 200},
		{host, "same-origin", "", 200},
		{host, "same-origin", "http://" + host, 200},
		{"localhost:7000", "", "", 200},
		{"LOCALHOST", "", "", 200},
		{"[::1]:7000", "", "http://[::1]:7000", 200},
		{"127.1.2.3:80", "", "", 200},
		{host, "cross-site", "", 403},
		{host, "same-site", "", 403}, // another port of this machine
		{host, "", "http://localhost:7000", 403},
		{host, "", "https://" + host, 403},
		{host, "", "http://evil.example", 403},
		{host, "", "null", 403},
		{"evil.example:7000", "same-origin", "http://evil.example:7000", 403}, // rebound
		{"127.0.0.1.evil.example:7000", "", "", 403},
		{"localhost.evil.example", "", "", 403},
		{"192.168.1.7:7000", "", "", 403},
		{"0.0.0.0:7000", "", "", 403},
		{"", "", "", 403},
	} {
		for _, target := range []string{"/", "/api/database"} {
			r := request("GET", target, nil)
			r.Host = c.host
			if c.site != "" {
				r.Header.Set("Sec-Fetch-Site", c.site)
			}
			if c.origin != "" {
				r.Header.Set("Origin", c.origin)
			}
			w := do(s, r)
			if w.Code != c.status {
				t.Errorf("%+v: %s: %d", c, target, w.Code)
			}
			if c.status == 403 {
				refused(t, w, 403, "")
			}
			protected(t, w.Header())
		}
	}
}

func protected(t *testing.T, h http.Header) {
	t.Helper()
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin",
		"X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
	} {
		if h.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, h.Get(name), want)
		}
	}
	if h.Get("Content-Security-Policy") == "" || h.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%q, %q", h.Get("Content-Security-Policy"), h.Get("Access-Control-Allow-Origin"))
	}
}

func TestCheckAddress(t *testing.T) {
	for address, good := range map[string]bool{
		"127.0.0.1:0": true, "localhost:80": true, "[::1]:0": true,
		"0.0.0.0:80": false, ":80": false, "[::]:80": false, "example.com:80": false, "127.0.0.1": false,
		"10.0.0.1:80": false, "": false,
	} {
		if err := CheckAddress(address); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
		if _, _, err := net.SplitHostPort(address); good && err != nil {
			t.Error(err)
		}
	}
}
