package explore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files/npy"
)

func matrixFile[T float32 | uint8](t *testing.T, rows ...[]T) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := npy.NewWriter[T](&b, len(rows), len(rows[0]))
	check(t, err)
	for _, row := range rows {
		check(t, w.Write(row))
	}
	check(t, w.Close())
	return b.Bytes()
}

func send(t *testing.T, s *Server, name string, body []byte) uploadForm {
	t.Helper()
	w := do(s, request("POST", "/api/uploads?name="+url.QueryEscape(name), body))
	var form uploadForm
	if err := json.Unmarshal(w.Body.Bytes(), &form); w.Code != 200 || err != nil {
		t.Fatalf("%s: %d: %s", name, w.Code, w.Body)
	}
	return form
}

// Rows of a file are searched for, dense, sparse or codes, in any order.
func TestSearchByRow(t *testing.T) {
	d := sharedDatabase(t)
	s := newServer(t, d)
	c, err := d.Collection("main")
	check(t, err)
	vectors := [][]float32{{1, 2, 3, 4, 5}, {0, 0, 2, 0, 0}, {5, 4, 3, 2, 1}}
	for name, body := range map[string][]byte{
		"a.npy":   matrixFile(t, vectors...),
		"a.csv":   []byte("1,2,3,4,5\n0,0,2,0,0\n5,4,3,2,1\n"),
		"a.jsonl": []byte("{\"i\":[0,1,2,3,4],\"v\":[1,2,3,4,5]}\n{\"i\":[2],\"v\":[2]}\n{\"i\":[0,1,2,3,4],\"v\":[5,4,3,2,1]}\n"),
	} {
		form := send(t, s, name, body)
		if form.Rows != 3 || form.Name != name || form.Upload == "" {
			t.Errorf("%s: %+v", name, form)
		}
		for _, row := range []int{2, 0, 0, 1} {
			want, err := c.Search(t.Context(), db.Query{From: "text", To: "image", Vector: vectors[row],
				K: 5})
			check(t, err)
			got := get[hitsForm](t, s, fmt.Sprintf("/api/search?from=text&to=image&k=5&upload=%s&row=%d",
				form.Upload, row))
			for i, h := range want.Hits {
				if got.Hits[i].Key != h.Key {
					t.Errorf("%s, row %d: hit %d is %q, want %q", name, row, i, got.Hits[i].Key, h.Key)
				}
			}
		}
		refused(t, do(s, request("GET", "/api/search?from=text&row=3&upload="+form.Upload, nil)), 400,
			"row 3: "+name+" has 3 rows")
		if name != "a.jsonl" { // it does not state the number of dimensions
			refused(t, do(s, request("GET", "/api/search?from=image&row=0&upload="+form.Upload, nil)), 400,
				"image")
		}
	}
	two := []byte("{\"a\":[0,0,2,0,0],\"b\":[5,4,3,2,1]}\n")
	refused(t, do(s, request("POST", "/api/uploads?name=two.jsonl", two)), 400,
		"say which of them is the vector with member=NAME")
	// Rows are not read for a client that has gone.
	left, cancel := context.WithCancel(t.Context())
	cancel()
	u, err := s.uploads.use(send(t, s, "a.csv", []byte("1\n2\n")).Upload)
	check(t, err)
	if _, err := u.rowAt(left, "", 1, false); err != context.Canceled {
		t.Errorf("who has left gets %v", err)
	}
	codes := send(t, s, "codes.npy", matrixFile(t, []uint8{1, 2, 0, 1}, []uint8{9, 1, 0, 0}))
	got := get[hitsForm](t, s, "/api/search?collection=given&row=1&upload="+codes.Upload)
	if got.QueryCode != "09010000" || len(got.Hits) != 10 {
		t.Errorf("%+v", got)
	}
	refused(t, do(s, request("GET", "/api/search?collection=given&row=2&upload="+codes.Upload, nil)), 400,
		"row 2")
}

// An unreadable file is refused and leaves nothing. Folders in its name do not matter.
func TestBadUploads(t *testing.T) {
	s := newServer(t, sharedDatabase(t))
	for name, want := range map[string]string{
		"":                     "neither a file of vectors",
		"a.exe":                "neither a file of vectors",
		"a.npy/":               "neither a file of vectors",
		"../../etc/passwd":     `"passwd" is neither a file of vectors`,
		"a.png":                "nor a picture, by its first bytes",
		"../../etc/broken.npy": "broken.npy",
		`C:\x\broken.npz`:      "broken.npz",
		"a\x00b.npy":           "b.npy",
		"broken.mat":           "broken.mat",
	} {
		w := do(s, request("POST", "/api/uploads?name="+url.QueryEscape(name), []byte("no,such\nthing,")))
		refused(t, w, 400, want)
		if dir := s.uploads.dir; dir != "" && strings.Contains(w.Body.String(), dir) {
			t.Errorf("%q: the answer names the folder: %s", name, w.Body)
		}
	}
	files, err := os.ReadDir(s.uploads.dir)
	if err != nil || len(files) != 0 {
		t.Errorf("%d files stay, %v", len(files), err)
	}
	r := httptest.NewRequest("POST", "http://"+host+"/api/uploads?name=a.csv",
		io.LimitReader(zeros{}, maxUpload+1))
	refused(t, do(s, r), 413, "at most 64 MiB")
	if files, err := os.ReadDir(s.uploads.dir); err != nil || len(files) != 0 {
		t.Errorf("%d files stay, %v", len(files), err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '0'
	}
	return len(b), nil
}

// The latest few files are kept, and none after the server is closed.
func TestUploadsGo(t *testing.T) {
	d := sharedDatabase(t)
	s, err := New(d, newServer(t, d).opt)
	check(t, err)
	first := send(t, s, "a.csv", []byte("1,2,3,4,5\n"))
	for range keptUploads {
		send(t, s, "b.csv", []byte("1,2,3,4,5\n"))
	}
	refused(t, do(s, request("GET", "/api/search?from=text&upload="+first.Upload, nil)), 404, "send it again")
	files, err := os.ReadDir(s.uploads.dir)
	if err != nil || len(files) != keptUploads {
		t.Errorf("%d files, %v", len(files), err)
	}
	check(t, s.Close())
	if _, err := os.Stat(s.uploads.dir); !os.IsNotExist(err) {
		t.Errorf("the folder stays: %v", err)
	}
	refused(t, do(s, request("POST", "/api/uploads?name=a.csv", []byte("1,2\n"))), 503, "closed")
}
