package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db/serve"
)

// expected are the statuses of answers; 500 would be a fault of the server.
var expected = []int{200, 202, 204, 400, 403, 404, 405, 408, 409, 411, 412, 413, 415, 429, 499, 501, 503, 504}

// Whatever a request is, the server answers with a status that fits and, if that is an error, with a problem.
func FuzzRequest(f *testing.F) {
	x := aim(f, serve.Options{MaxBody: 1 << 20, Timeout: 10 * time.Second}, nil)
	x.ended = true // requests change the database
	for _, op := range x.operations() {
		f.Add(op.method, op.path, "", []byte("{}"))
	}
	for _, s := range []struct{ method, path, header, body string }{
		{"POST", main + ":search", "", `{"from":"image","vector":[1,0,2,1],"k":2,"include":["labels","vectors"]}`},
		{"POST", main + ":search", "", `{"from":"image","vector":"AACAPwAAgD8AAIA/AACAPw==","facets":["year"]}`},
		{"POST", main + ":search", "", `{"from":"text","vector":{"i":[1],"v":[1]},"rerank":"asymmetric"}`},
		{"POST", main + ":search?space=1", "", `{"code":"00ff","where":"year IN (?) OR label = ?","args":[[1,2],"a"]}`},
		{"POST", main + ":radius", "", `{"key":"key1","from":"image","radius":3,"exclude_self":true}`},
		{"POST", main + ":facets", "", `{"by":"label","limit":1}`},
		{"POST", main + ":delete", "", `{"keys":["key1"]}`},
		{"POST", main + ":train", "Accept: text/event-stream", `{"bits":16,"anchors":8}`},
		{"POST", main + ":evaluate", "", `{"queries":{"image":[[1,0,2,1]]},"labels":[["class 1"]]}`},
		{"POST", main + ":import?merge=true&on_error=skip", "Content-Type: application/x-ndjson", "{\"key\":\"a\"}\n{"},
		{"POST", main + ":import?vectors=image", "Content-Type: application/x-npy",
			"\x93NUMPY\x01\x00\x3b\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4), }\x00\x00\x80\x3f"},
		{"POST", main + ":count", "Content-Encoding: gzip", "\x1f\x8b\x08\x00\x00\x00\x00\x00"},
		{"POST", main + ":count", "Content-Encoding: zstd", "\x28\xb5\x2f\xfd\x04\x00\x11\x00\x00{}"},
		{"POST", photos + ":write", "", "{\"collection\":\"main\",\"put\":{\"labels\":[\"x\"]}}\n{\"mark\":{\"name\":\"a\",\"value\":\"\"}}"},
		{"PUT", main + "/items/a%2Fb%3A", "If-None-Match: *", `{"fields":{"year":1},"payload":"AAAA"}`},
		{"PUT", photos + "/collections/other", "", `{"modalities":[{"name":"a","dim":3}],"fields":[{"name":"f","type":"time"}]}`},
		{"PATCH", main, "", `{"add_fields":[{"name":"f","type":"bool","indexed":true}],"metrics":{"image":"cosine"}}`},
		{"GET", main + ":export?sample=3&seed=1&where=year+%3E+%3F&args=%5B3%5D", "", ""},
		{"GET", main + ":export?codes=true", "", ""},
		{"GET", main + "/keys?prefix=k&limit=2", "", ""},
		{"GET", "//v1/../%2e%2e/%00", "", ""},
	} {
		f.Add(s.method, s.path, s.header, []byte(s.body))
	}
	f.Fuzz(func(t *testing.T, method, path, header string, body []byte) {
		text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\n%s\r\nContent-Length: %d\r\n\r\n", method, path, header,
			len(body))
		if header == "" {
			text = strings.Replace(text, "\r\n\r\nContent-Length", "\r\nContent-Length", 1)
		}
		req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text + string(body))))
		if err != nil {
			return // package net/http refuses it
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		w := httptest.NewRecorder()
		cut := func() (cut bool) {
			defer func() {
				if p := recover(); p == http.ErrAbortHandler {
					cut = true
				} else if p != nil {
					panic(p)
				}
			}()
			x.server.ServeHTTP(w, req.WithContext(ctx))
			return false
		}()
		x.mu.Lock()
		faults := x.faults
		x.faults = nil
		x.mu.Unlock()
		if len(faults) > 0 {
			t.Fatalf("%q", faults)
		}
		if _, err := x.d.Collection(t.Context(), "main"); err != nil {
			x.t = t
			x.fill()
		}
		if cut {
			return
		}
		if !slices.Contains(expected, w.Code) {
			t.Errorf("status %d: %.300s", w.Code, w.Body)
		}
		if w.Code >= 400 {
			x.t = t
			x.refused(method+" "+path, w.Code, w.Header(), w.Body.Bytes(), w.Code)
		} else if w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()) {
			t.Errorf("no JSON: %.300s", w.Body)
		}
	})
}
