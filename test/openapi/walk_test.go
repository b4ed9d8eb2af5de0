package openapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/serve"
	"github.com/fddhdb/fddhdb/files/npy"
)

// stores opens a folder as a place of backups.
func stores(_ context.Context, place string) (backup.Store, error) {
	path, is := strings.CutPrefix(place, "file://")
	if !is {
		return nil, fmt.Errorf("%q is no folder", place)
	}
	return backup.Folder(path)
}

// A walker sends plain requests, as a program in any language does.
type walker struct {
	*checker
	client *http.Client
}

// An answer is the answer to a request.
type answer struct {
	*http.Response
	body []byte
}

// send sends a request whose answer must have a status. body is sent as JSON unless it is a []byte, which
// header describes: "Name: value".
func (w walker) send(status int, method, path string, body any, header ...string) answer {
	w.t.Helper()
	b, is := body.([]byte)
	if !is && body != nil {
		var err error
		if b, err = json.Marshal(body); err != nil {
			w.t.Fatal(err)
		}
		header = append([]string{"Content-Type: application/json"}, header...)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, bytes.NewReader(b))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	r, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Body.Close()
	got, err := io.ReadAll(r.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if r.StatusCode != status {
		w.t.Errorf("%s %s: %s, not %d: %.600s", method, path, r.Status, status, got)
	}
	return answer{r, got}
}

// job begins a job, and asks for it until it has ended.
func (w walker) job(state, path string, body any, header ...string) {
	w.t.Helper()
	r := w.send(202, "POST", path, body, header...)
	place := r.Header.Get("Location")
	for {
		var job struct {
			State string
			Error any
		}
		if err := json.Unmarshal(w.send(200, "GET", place, nil).body, &job); err != nil {
			w.t.Fatal(err)
		}
		if job.State != "running" {
			if job.State != state {
				w.t.Errorf("%s: %s, not %s: %v", path, job.State, state, job.Error)
			}
			return
		}
		w.send(200, "GET", place+"/events", nil)
	}
}

type object = map[string]any

// follow begins a job, and hears its events.
func (w walker) follow(path string, body any, header ...string) string {
	w.t.Helper()
	return string(w.send(200, "POST", path, body, append(header, "Accept: text/event-stream")...).body)
}

// vector returns the vector of item i, and the same in base64.
func vector(i int) (x []float32, text string) {
	var raw []byte
	for j := range 8 {
		x = append(x, float32(math.Sin(float64(i*i+j*(i%4+1)))))
		if j == i%4 {
			x[j] += 3
		}
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x[j]))
	}
	return x, base64.StdEncoding.EncodeToString(raw)
}

func item(i int) object {
	x, _ := vector(i)
	return object{"key": fmt.Sprint("key ", i), "labels": []string{fmt.Sprint("class ", i%4)},
		"vectors": object{"image": x, "text": object{"i": []int{i % 4, 9}, "v": []float64{1, .5}}},
		"fields": object{"year": 2000 + i, "price": float64(i) / 4, "title": "<é>", "sold": i%2 == 0,
			"at": "2020-01-02T03:04:05Z"},
		"payload": "AAH/"}
}

func ndjson(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		_ = json.NewEncoder(&b).Encode(v)
	}
	return b.Bytes()
}

// matrix returns a .npy.
func matrix[T float32 | uint8](t *testing.T, rows ...[]T) []byte {
	var b bytes.Buffer
	a, err := npy.NewWriter[T](&b, len(rows), len(rows[0]))
	for _, row := range rows {
		if err == nil {
			err = a.Write(row)
		}
	}
	if err == nil {
		err = a.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const (
	lines  = "Content-Type: application/x-ndjson"
	array  = "Content-Type: application/x-npy"
	octets = "Content-Type: application/octet-stream"
)

var schema = object{
	"modalities": []object{{"name": "image", "dim": 8}, {"name": "text", "dim": 16, "sparse": true}},
	"fields": []object{{"name": "year", "type": "int", "indexed": true}, {"name": "price", "type": "float"},
		{"name": "title", "type": "string"}, {"name": "sold", "type": "bool"},
		{"name": "at", "type": "time"}},
}

// Every answer is as the document says, on every route.
func TestEveryAnswerIsDescribed(t *testing.T) {
	c := serving(t, serve.Options{})
	w := walker{c, &http.Client{Transport: c}}
	const d = "/v1/photos"
	const m = d + "/collections/main"

	w.send(204, "GET", "/healthz", nil)
	w.send(204, "GET", "/readyz", nil)
	w.send(200, "GET", "/openapi.json", nil)
	w.send(200, "GET", "/metrics", nil)
	w.send(200, "GET", "/v1", nil)
	for _, path := range []string{"/healthz", "/readyz", "/openapi.json", "/metrics", "/v1", d} {
		w.send(400, "GET", path+"?odd=1", nil)
	}
	w.send(404, "GET", "/v1/nobody", nil)
	w.send(404, "GET", "/v1/nobody/collections", nil)
	w.send(200, "GET", d+"/collections", nil)
	w.send(200, "GET", d, nil)

	// Collections.
	w.send(404, "GET", m, nil)
	w.send(400, "PUT", m, object{"modalities": []object{{"name": "image"}}})
	w.send(200, "PUT", m, schema)
	w.send(409, "PUT", m, schema)
	w.send(200, "PUT", d+"/collections/codes", object{"bits": 16})
	w.send(400, "PUT", d+"/collections/empty", object{})
	w.send(200, "PUT", d+"/collections/pictures", object{"bits": 64, "hash": "dhash"})
	w.send(200, "PUT", d+"/collections/texts", object{"bits": 64, "hash": "simhash"})
	w.send(200, "GET", d+"/collections/pictures", nil)
	w.send(200, "GET", d+"/collections/texts", nil)
	w.send(200, "GET", d+"/collections", nil)
	w.send(200, "GET", m, nil)
	w.send(204, "PATCH", m, object{"add_fields": []object{{"name": "more", "type": "string"}},
		"index_fields": []string{"price"}, "index_words": []string{"title"},
		"encoders": []object{{"modality": "text", "input": "text",
			"command": []string{"cat"}, "fingerprint": []byte("any")}}})
	w.send(409, "PATCH", m, object{"add_fields": []object{{"name": "year", "type": "string"}}})
	w.send(200, "GET", m, nil)

	// Items.
	w.send(200, "POST", m+"/items", item(0))
	w.send(200, "POST", m+"/items", object{"fields": object{"year": 1, "more": nil}})
	w.send(400, "POST", m+"/items", object{"fields": object{"nobody": 1}})
	w.send(400, "POST", m+"/items", object{"vectors": object{"image": []float64{1}}})
	put := w.send(200, "PUT", m+"/items/key%2F1%3A", object{"fields": object{"price": 3}})
	_ = put
	w.send(412, "PUT", m+"/items/key%2F1%3A", object{}, "If-None-Match: *")
	got := w.send(200, "GET", m+"/items/key%2F1%3A", nil)
	w.send(200, "PUT", m+"/items/key%2F1%3A", object{}, "If-Match: "+got.Header.Get("ETag"))
	w.send(412, "PUT", m+"/items/key%2F1%3A", object{}, "If-Match: "+got.Header.Get("ETag"))
	w.send(200, "PATCH", m+"/items/key%2F1%3A", object{"labels": []string{"odd"}})
	w.send(400, "PATCH", m+"/items/key%2F1%3A", object{"key": "another"})
	w.send(200, "DELETE", m+"/items/key%2F1%3A", nil)
	w.send(404, "DELETE", m+"/items/key%2F1%3A", nil)
	w.send(404, "GET", m+"/items/key%2F1%3A", nil)
	_, text := vector(3)
	w.send(200, "PUT", m+"/items/base64", object{"vectors": object{"image": text}})
	w.send(200, "GET", m+"/items/base64", nil)

	// Many items.
	var all []any
	for i := range 60 {
		all = append(all, item(i))
	}
	w.send(200, "POST", m+":import", ndjson(all...), lines)
	w.send(200, "POST", m+":import?on_error=skip&merge=true",
		ndjson(item(3), object{"fields": object{"nobody": 1}}), lines)
	w.send(400, "POST", m+":import", ndjson(item(3), object{"fields": object{"nobody": 1}}), lines)
	var rows [][]float32
	for i := range 3 {
		x, _ := vector(i)
		rows = append(rows, x)
	}
	npyRows := matrix(t, rows...)
	w.send(200, "POST", m+":import?vectors=image&number_from=1000", npyRows, array)
	w.send(400, "POST", m+":import?vectors=nobody", npyRows, array)
	w.send(404, "POST", d+"/collections/nobody:import", ndjson(item(3)), lines)
	w.send(200, "GET", m+":export", nil)
	w.send(200, "GET", m+":export?where=year+%3E+%3F&args=[2010]", nil)
	w.send(200, "GET", m+":export?sample=3&seed=9223372036854775807", nil)
	w.send(200, "GET", m+":export?vectors=image&where="+url.QueryEscape("has(image)"), nil)
	w.send(400, "GET", m+":export?where=yeer+%3D+1", nil)
	w.send(404, "GET", m+":export?vectors=nobody", nil)
	w.send(200, "GET", m+"/keys", nil)
	w.send(200, "GET", m+"/keys?prefix=key&limit=3", nil)
	w.send(400, "GET", m+"/keys?limit=-1", nil)
	w.send(200, "POST", d+":write", ndjson(
		object{"collection": "main", "put": item(70)}, object{"collection": "main", "merge": item(71)},
		object{"collection": "main", "expect": object{"key": "nobody", "item": nil}},
		object{"collection": "main", "delete": "key 70"},
		object{"collection": "main", "labels": []string{"registered"}},
		object{"mark": object{"name": "my/mark", "value": "AAH/"}}), lines)
	w.send(409, "POST", d+":write", ndjson(
		object{"collection": "main", "expect": object{"key": "key 3", "item": nil}}), lines)
	w.send(200, "GET", d+"/marks/my%2Fmark", nil)
	w.send(404, "GET", d+"/marks/nobody", nil)
	w.send(200, "POST", m+":delete", object{"keys": []string{"key 71", "nobody"}})
	w.send(200, "POST", m+":delete", object{"where": "year = ? OR price IN (?)", "args": []any{1, []any{7.5, 8}}})
	w.send(400, "POST", m+":delete", object{})

	// Searches by vectors, and what needs no codes.
	x, text := vector(2)
	by := object{"from": "image", "vector": x, "k": 3, "facets": []string{"label", "sold"},
		"include": []string{"labels", "fields", "payload", "vectors", "cursor", "distances", "explain"}}
	w.send(200, "POST", m+":search", by)
	w.send(200, "POST", m+":search", object{"from": "image", "vector": text,
		"where": "price > ? AND sold = ?", "args": []any{1.5, true}})
	w.send(200, "POST", m+":search", object{"key": "key 3", "exclude_self": true, "from": "text"})
	w.send(200, "POST", m+":search", object{"words": "é", "key": "key 3", "from": "text"})
	w.send(200, "POST", m+":search", object{"words": "é", "where": "title CONTAINS 'É'"})
	w.send(400, "POST", m+":search", object{"words": "é", "after": "x"})
	w.send(400, "POST", m+":search", object{"from": "nobody", "vector": x})
	w.send(413, "POST", m+":search", object{"from": "image", "vector": x, "k": 1 << 20})
	w.send(409, "POST", m+":radius", object{"from": "image", "vector": x, "radius": 3})
	w.send(200, "POST", m+":count", object{"where": "label IN (?)", "args": []any{[]string{"class 1"}}})
	w.send(400, "POST", m+":count", object{"where": "label = ?"})
	w.send(200, "POST", m+":facets", object{"by": "label", "limit": 2})
	w.send(200, "POST", m+":facets", object{"by": "price", "where": "year > 2010"})
	w.send(400, "POST", m+":facets", object{"by": "nobody"})
	w.send(200, "GET", m+"/labels", nil)
	w.send(404, "GET", d+"/collections/nobody/labels", nil)
	w.send(204, "POST", m+":rename-label", object{"old": "class 3", "new": "third"})
	w.send(404, "POST", m+":rename-label", object{"old": "class 3", "new": "third"})
	w.send(200, "GET", m+"/stats?disk=true", nil)
	w.send(409, "GET", m+"/stats?drift=true", nil)
	w.send(200, "GET", m+"/spaces", nil)
	w.send(409, "POST", m+":encode", object{"from": "image", "vector": x})
	w.send(200, "POST", m+":embed", object{"from": "image", "text": "a cat"})
	w.send(200, "POST", m+":embed", object{"file": "AAEC"})
	w.send(400, "POST", m+":embed", object{"from": "text", "text": "a cat"})
	w.send(502, "POST", m+":embed", object{"text": "fail"})
	w.send(400, "POST", d+"/collections/codes:embed", object{"text": "a cat"})
	w.send(200, "POST", d+"/collections/texts:embed", object{"text": "a cat"})
	w.send(200, "POST", d+"/collections/texts:search", object{"text": "a cat"})
	w.send(200, "POST", d+"/collections/pictures:embed", object{"file": "AAEC"})
	w.send(400, "POST", d+"/collections/pictures:embed", object{"file": "AAEA"})
	w.send(400, "POST", d+"/collections/pictures:embed", object{"text": "a cat"})
	w.send(200, "POST", m+":search", object{"text": "a cat"})
	w.send(400, "POST", m+":search", object{"text": "a cat", "key": "key 1"})
	w.send(200, "POST", m+":cards", object{"keys": []string{"key 1", "nobody"}})
	w.send(200, "POST", m+":cards", object{"where": "year > ?", "args": []any{2001}, "limit": 3, "seed": 1})
	w.send(400, "POST", m+":cards", object{"limit": 2000})
	w.send(200, "GET", m+"/items/key%201/media", nil)
	w.send(404, "GET", m+"/items/key%201/media?field=title", nil)
	w.send(200, "POST", m+":map", object{})
	w.send(200, "POST", m+":map", object{"by": "image", "where": "year > 2001", "limit": 5, "seed": 7})
	w.send(400, "POST", m+":map", object{"by": "text"})
	w.send(409, "GET", m+"/model", nil)
	w.send(409, "GET", m+":export?codes=true", nil)
	w.send(200, "POST", d+"/collections/codes:import", ndjson(object{"key": "a", "code": "00ff"},
		object{"key": "b", "code": "0FFF", "labels": []string{"x"}}), lines)
	w.send(200, "POST", d+"/collections/codes:import?codes=true", matrix(t, []uint8{0, 1}, []uint8{255, 3}), array)
	w.send(200, "GET", d+"/collections/codes:export", nil)
	w.send(200, "GET", d+"/collections/codes/stats", nil)
	w.send(200, "POST", d+"/collections/codes:search", object{"code": "00ff"})
	w.send(200, "POST", d+"/collections/codes:search", object{"key": "a", "k": 1})
	w.send(200, "POST", d+"/collections/codes:radius", object{"code": "00ff", "radius": 1, "k": 1})
	w.send(200, "GET", d+"/collections/codes/spaces", nil)
	w.send(200, "GET", d, nil)

	// Models.
	w.job("done", m+":train", object{"bits": 16, "seed": 3, "anchors": 20, "activate": true})
	w.job("failed", m+":train", object{"bits": 17})
	w.follow(m+":train", object{"bits": 16, "map": object{"image": "linear", "text": "linear"}, "prior": .5})
	w.follow(d+"/collections/codes:train", object{})
	w.send(404, "POST", d+"/collections/nobody:train", object{})
	w.send(200, "POST", m+":search", by)
	w.send(200, "POST", m+":search", object{"from": "text",
		"vector": object{"i": []int{2}, "v": []float64{1}}, "rerank": "asymmetric", "k": 2})
	w.send(200, "POST", m+":radius", object{"from": "image", "vector": x, "radius": 3,
		"include": []string{"distances", "explain"}})
	w.send(200, "POST", m+":encode", object{"text": "a cat"})
	w.send(200, "POST", m+":search-many", ndjson(by, object{"from": "image", "vector": x, "k": 1}), lines)
	w.send(200, "POST", m+":search-many", ndjson(object{"from": "image", "vector": x, "radius": 3}), lines)
	w.send(400, "POST", m+":search-many", ndjson(by, object{"text": "a cat"}), lines)
	w.send(404, "POST", m+":search-many", ndjson(by, object{"key": "nobody", "from": "image"}), lines)
	w.send(200, "POST", m+":pairs", object{"radius": 8, "limit": 3})
	w.send(200, "POST", m+":groups", object{"radius": 2, "keep": "newest", "connected": true})
	w.send(200, "POST", m+":groups", object{"modality": "image", "min_similarity": .5})
	w.send(400, "POST", m+":pairs", object{"radius": -1})
	w.send(404, "POST", m+":pairs", object{"against": "nobody"})
	w.send(400, "POST", m+":groups", object{"keep": "biggest"})
	w.send(200, "POST", m+":map", object{})
	w.send(200, "POST", m+":search", object{"from": "image", "vector": x, "include": []string{"explain"}})
	code := struct{ Code string }{}
	if err := json.Unmarshal(w.send(200, "POST", m+":encode", object{"from": "image", "vector": x}).body,
		&code); err != nil {
		t.Fatal(err)
	}
	w.send(200, "POST", m+":encode", object{"item": object{"vectors": object{"image": x}}})
	w.send(200, "POST", m+":search", object{"code": code.Code, "plan": "scan", "rerank": "none"})
	w.send(200, "GET", m+":export?codes=true&where="+url.QueryEscape("has(image)"), nil)
	w.send(200, "GET", m+"/items/key%201", nil)
	w.send(200, "GET", m+":export?space=1", nil)
	w.send(404, "GET", m+":export?space=9", nil)
	w.job("done", m+":evaluate", object{"queries": object{"image": []any{x, text}},
		"labels": [][]string{{"class 0"}, {"nobody has it"}}})
	w.job("failed", m+":evaluate", object{"queries": object{"image": []any{x}}, "labels": [][]string{}})
	w.send(404, "POST", d+"/collections/nobody:evaluate", object{"queries": object{}, "labels": nil})
	late := item(1)
	late["key"] = "late"
	w.send(200, "POST", m+"/items", late)
	w.job("done", m+":update", object{"teacher": "labels", "grow_labels": true})
	w.follow(m+":update", object{"teacher": "auto"})
	w.send(400, "POST", m+":update", object{"teacher": "nobody"})
	w.job("done", m+":reindex", object{"rate": 1000})
	w.send(404, "POST", m+":reindex?space=77", object{})
	w.send(200, "GET", m+"/spaces", nil)
	w.send(204, "POST", m+":activate", object{"space": 2})
	w.send(404, "POST", m+":activate", object{"space": 99})
	w.send(200, "POST", m+":rollback", nil)
	w.send(400, "POST", d+"/collections/codes:rollback", nil)
	w.send(200, "POST", m+":restore-revision", object{"space": 1, "revision": 1})
	w.send(404, "POST", m+":restore-revision", object{"space": 1, "revision": 99})
	w.send(204, "DELETE", m+"/spaces/2", nil)
	w.send(404, "DELETE", m+"/spaces/2", nil)
	w.send(404, "DELETE", m+"/spaces/x", nil)
	exported := w.send(200, "GET", m+"/model", nil)
	w.send(200, "PUT", d+"/collections/other", schema)
	w.job("done", d+"/collections/other:import-model?activate=true", exported.body, octets)
	w.job("failed", d+"/collections/other:import-model", []byte("no model"), octets)
	w.send(404, "POST", d+"/collections/nobody:import-model", exported.body, octets)
	w.job("done", m+":index", object{"modality": "image", "recall": .9, "seed": 1})
	w.job("failed", m+":index", object{"modality": "nobody"})
	w.send(404, "POST", d+"/collections/nobody:index", object{"modality": "image"})
	w.send(200, "GET", m+"/stats?drift=true", nil)
	w.send(404, "GET", d+"/collections/nobody/stats", nil)
	w.send(404, "GET", d+"/collections/nobody/spaces", nil)
	w.send(204, "DELETE", m+"/indexes/image", nil)
	w.send(404, "DELETE", m+"/indexes/image", nil)

	// The database, and its jobs.
	w.send(200, "GET", d+"?loaded=true", nil)
	w.job("done", d+":compact", nil)
	w.send(404, "POST", "/v1/nobody:compact", nil)
	w.job("done", d+":verify", object{"deep": true})
	w.follow(d+":verify", object{})
	w.send(404, "POST", "/v1/nobody:verify", object{})
	w.job("done", d+":backup", object{"url": "file://" + t.TempDir()})
	w.job("failed", d+":backup", object{"url": "nowhere"})
	w.send(400, "POST", d+":backup", object{"url": ""})
	w.send(404, "POST", "/v1/nobody:backup", object{"url": "file:///nowhere"})
	w.send(200, "GET", d, nil)
	var jobs struct{ Jobs []struct{ ID string } }
	err := json.Unmarshal(w.send(200, "GET", d+"/jobs", nil).body, &jobs)
	if err != nil || len(jobs.Jobs) == 0 {
		t.Fatalf("%v, or no jobs", err)
	}
	w.send(404, "GET", "/v1/nobody/jobs", nil)
	w.send(200, "DELETE", d+"/jobs/"+jobs.Jobs[0].ID, nil)
	for method, path := range map[string]string{"GET": "nobody", "DELETE": "nobody", "get": "nobody/events"} {
		w.send(404, strings.ToUpper(method), d+"/jobs/"+path, nil)
	}
	w.send(405, "PUT", d+"/jobs", nil)
	w.send(204, "DELETE", d+"/collections/other", nil)
	w.send(404, "DELETE", d+"/collections/other", nil)
	c.covered()
}

// The document of a server with tokens asks for them, and errors of access are as it says.
func TestDocumentOfTokens(t *testing.T) {
	c := serving(t, serve.Options{Version: "v1", Access: func(r *http.Request) (*serve.Access, error) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			return nil, nil
		}
		return &serve.Access{Scope: serve.Write, Collections: []string{"main"}}, nil
	}})
	w := walker{c, &http.Client{Transport: c}}
	var faults []string
	c.fault = func(s string) { faults = append(faults, s) }
	w.send(401, "GET", "/v1", nil)
	if len(faults) != 1 || !strings.Contains(faults[0], "bearer") {
		t.Errorf("a request without a token is as the document says: %q", faults)
	}
	c.fault = func(s string) { t.Error(s) }
	w.send(204, "GET", "/healthz", nil)
	w.send(200, "GET", "/v1", nil, "Authorization: Bearer secret")
	w.send(200, "GET", "/v1/photos/collections", nil, "Authorization: Bearer secret")
	w.send(403, "GET", "/v1/photos/collections/other", nil, "Authorization: Bearer secret")
	w.send(403, "DELETE", "/v1/photos/collections/main", nil, "Authorization: Bearer secret")
	// Of a whole database such a token sees what is of its collections.
	w.send(200, "GET", "/v1/photos/jobs", nil, "Authorization: Bearer secret")
	w.send(404, "POST", "/v1/photos:write", ndjson(object{"collection": "main", "put": object{"key": "a"}}),
		lines, "Authorization: Bearer secret")
	w.send(403, "POST", "/v1/photos:write", ndjson(object{"collection": "other", "put": object{"key": "a"}}),
		lines, "Authorization: Bearer secret")
	w.send(403, "POST", "/v1/photos:write", ndjson(object{"mark": object{"name": "a", "value": ""}}), lines,
		"Authorization: Bearer secret")
}
