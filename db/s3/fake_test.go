package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/backup/storetest"
)

// fake is an S3 server for the requests of a Store, which fails on demand. TestServer
// uses a real one.
type fake struct {
	*httptest.Server
	objects storetest.Memory

	mu       sync.Mutex
	etags    map[string]string
	uploads  map[string][][]byte // parts by upload
	requests []string            // METHOD, object or bucket, and range
	fail     func(w http.ResponseWriter, r *http.Request) bool
}

// newFake starts a server with a bucket called bucket. fail may answer a request
// instead.
func newFake(t *testing.T, fail func(w http.ResponseWriter, r *http.Request) bool) *fake {
	f := &fake{etags: map[string]string{}, uploads: map[string][][]byte{}, fail: fail}
	f.Server = httptest.NewTLSServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fake) options() Options {
	return Options{
		Endpoint: f.URL, Bucket: "bucket", Prefix: "a/prefix", AccessKeyID: "key", SecretAccessKey: "secret",
		Tries: 10, Transport: f.Client().Transport,
	}
}

func (f *fake) open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), f.options())
	if err != nil {
		t.Fatal(err)
	}
	f.forget()
	return s
}

// forget drops the recorded requests.
func (f *fake) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = nil
}

// count returns how often a request came.
func (f *fake) count(request string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.requests {
		if strings.HasPrefix(r, request) {
			n++
		}
	}
	return n
}

func (f *fake) openUploads() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.uploads)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	what := "object"
	switch {
	case q.Has("location"):
		what = "location"
	case q.Has("uploads"), q.Has("uploadId"):
		what = "upload"
	case key == "":
		what = "list"
	}
	f.mu.Lock()
	f.requests = append(f.requests, strings.TrimSpace(r.Method+" "+what+" "+r.Header.Get("Range")))
	f.mu.Unlock()
	if f.fail != nil && f.fail(w, r) {
		return
	}
	if bucket != "bucket" {
		refuse(w, http.StatusNotFound, "NoSuchBucket")
		return
	}
	switch r.Method + " " + what {
	case "GET location":
		answer(w, `<LocationConstraint>eu-central-1</LocationConstraint>`)
	case "GET list":
		f.list(w, q.Get("prefix"), q.Get("continuation-token"), q.Get("max-keys"))
	case "PUT object":
		if b, ok := f.body(w, r); ok {
			f.put(w, r.Context(), key, b)
		}
	case "GET object":
		f.get(w, r, key)
	case "DELETE object":
		_ = f.objects.Delete(r.Context(), key)
		w.WriteHeader(http.StatusNoContent)
	default:
		f.upload(w, r, key, q.Get("uploadId"), q.Get("partNumber"))
	}
}

// body reads the body of a put, and refuses it if its MD5 differs.
func (f *fake) body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, false
	}
	if sum := md5.Sum(b); r.Header.Get("Content-Md5") != base64.StdEncoding.EncodeToString(sum[:]) {
		refuse(w, http.StatusBadRequest, "BadDigest")
		return nil, false
	}
	return b, true
}

func (f *fake) put(w http.ResponseWriter, ctx context.Context, key string, b []byte) {
	sum := md5.Sum(b)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.etags[key] = hex.EncodeToString(sum[:])
	if err := f.objects.Put(ctx, key, bytes.NewReader(b), int64(len(b))); err != nil {
		return
	}
	w.Header().Set("ETag", `"`+f.etags[key]+`"`)
}

func (f *fake) get(w http.ResponseWriter, r *http.Request, key string) {
	f.mu.Lock()
	o, err := f.objects.Get(r.Context(), key)
	etag := f.etags[key]
	f.mu.Unlock()
	if err != nil {
		refuse(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	b, _ := io.ReadAll(o)
	w.Header().Set("ETag", `"`+etag+`"`)
	// ServeContent handles If-Match and Range.
	http.ServeContent(w, r, "", time.Unix(1, 0), bytes.NewReader(b))
}

// list answers with pages of twenty.
func (f *fake) list(w http.ResponseWriter, prefix, after, most string) {
	type content struct {
		Key, LastModified string
		Size              int64
	}
	var page struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string
		Contents              []content
	}
	limit, err := strconv.Atoi(most)
	if err != nil || limit > 20 {
		limit = 20
	}
	_ = f.objects.List(context.Background(), prefix, func(o backup.Object) error {
		switch {
		case o.Name <= after:
		case len(page.Contents) == limit:
			page.IsTruncated, page.NextContinuationToken = true, page.Contents[limit-1].Key
		default:
			page.Contents = append(page.Contents, content{o.Name, o.Modified.UTC().Format(time.RFC3339Nano),
				o.Size})
		}
		return nil
	})
	b, _ := xml.Marshal(page)
	answer(w, string(b))
}

func (f *fake) upload(w http.ResponseWriter, r *http.Request, key, id, part string) {
	if r.Method == "PUT" {
		b, ok := f.body(w, r)
		if !ok {
			return
		}
		n, _ := strconv.Atoi(part)
		f.mu.Lock()
		defer f.mu.Unlock()
		parts := f.uploads[id]
		f.uploads[id] = append(parts[:min(n-1, len(parts))], b)
		w.Header().Set("ETag", fmt.Sprintf(`"part %d"`, n))
		return
	}
	f.mu.Lock()
	parts, known := f.uploads[id]
	switch {
	case r.Method == "POST" && id == "":
		id = strconv.Itoa(len(f.requests))
		f.uploads[id] = nil
	case known:
		delete(f.uploads, id)
	}
	f.mu.Unlock()
	switch {
	case r.Method == "POST" && !known:
		answer(w, `<InitiateMultipartUploadResult><UploadId>`+id+`</UploadId></InitiateMultipartUploadResult>`)
	case r.Method == "POST":
		f.put(w, r.Context(), key, slices.Concat(parts...))
		answer(w, `<CompleteMultipartUploadResult><Bucket>bucket</Bucket><ETag>"x"</ETag></CompleteMultipartUploadResult>`)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func answer(w http.ResponseWriter, xml string) {
	w.Header().Set("Content-Type", "application/xml")
	_, _ = io.WriteString(w, xml)
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	answer(w, `<Error><Code>`+code+`</Code><Message>The server says no.</Message></Error>`)
}
