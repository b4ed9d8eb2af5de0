package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db/backup"
)

// two is an object of two parts.
var two = bytes.Repeat([]byte("0123456789abcde\n"), 1<<20+1)

func put(ctx context.Context, s *Store, name string, data []byte) error {
	return s.Put(ctx, name, bytes.NewReader(data), int64(len(data)))
}

func get(ctx context.Context, s *Store, name string) ([]byte, error) {
	r, err := s.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func names(ctx context.Context, s *Store) ([]string, error) {
	var all []string
	err := s.List(ctx, "", func(o backup.Object) error {
		all = append(all, o.Name)
		return nil
	})
	return all, err
}

// A request that fails twice and then succeeds has not failed.
func TestFailuresThatPass(t *testing.T) {
	for name, refuseOne := range map[string]func(w http.ResponseWriter, r *http.Request){
		"500": func(w http.ResponseWriter, _ *http.Request) { refuse(w, 500, "InternalError") },
		"503": func(w http.ResponseWriter, _ *http.Request) { refuse(w, 503, "SlowDown") },
		"502 HTML": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(502)
			fmt.Fprint(w,
				"<html>Bad gateway")
		},
		"cut": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.CopyN(io.Discard, r.Body, 1000)
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			f := newFake(t, func(w http.ResponseWriter, r *http.Request) bool {
				if strings.Contains(r.URL.RawQuery, "location") || requests.Add(1)%3 == 0 {
					return false
				}
				refuseOne(w, r)
				return true
			})
			s := f.open(t)
			ctx := t.Context()
			sizes := [][]byte{[]byte("one"), nil, two}
			if testing.Short() {
				sizes = sizes[:2]
			}
			for _, data := range sizes {
				if err := put(ctx, s, "object", data); err != nil {
					t.Fatal(err)
				}
				if got, err := get(ctx, s, "object"); err != nil || !bytes.Equal(got, data) {
					t.Fatalf("%d bytes, error %v, want %d", len(got), err, len(data))
				}
			}
			if all, err := names(ctx, s); err != nil || len(all) != 1 {
				t.Errorf("%q, %v", all, err)
			}
			if err := s.Delete(ctx, "object"); err != nil {
				t.Error(err)
			}
			if all, err := names(ctx, s); err != nil || len(all) != 0 {
				t.Errorf("%q, %v", all, err)
			}
		})
	}
}

// A permanent failure is an error, and leaves everything unchanged.
func TestFailuresThatStay(t *testing.T) {
	var down atomic.Bool
	f := newFake(t, func(w http.ResponseWriter, r *http.Request) bool {
		if down.Load() {
			refuse(w, 503, "SlowDown")
		}
		return down.Load()
	})
	s := f.open(t)
	ctx := t.Context()
	if err := put(ctx, s, "object", []byte("before")); err != nil {
		t.Fatal(err)
	}
	down.Store(true)
	refused(t, put(ctx, s, "object", []byte("after")),
		"put object: The server says no (SlowDown): the server cannot do it now, in 10 tries: try again later")
	refused(t, put(ctx, s, "object", two), "try again later")
	_, err := get(ctx, s, "object")
	refused(t, err, "get object: ")
	if errors.Is(err, fs.ErrNotExist) {
		t.Error("a server that is down has no objects")
	}
	_, err = names(ctx, s)
	refused(t, err, "list *: ")
	refused(t, s.Delete(ctx, "object"), "delete object: ")
	down.Store(false)
	if got, err := get(ctx, s, "object"); err != nil || string(got) != "before" {
		t.Errorf("%q, %v", got, err)
	}
}

// A list is whole or an error, also if a later page fails.
func TestListIsWhole(t *testing.T) {
	var fail atomic.Bool
	f := newFake(t, func(w http.ResponseWriter, r *http.Request) bool {
		if fail.Load() && r.URL.Query().Has("continuation-token") {
			refuse(w, 500, "InternalError")
			return true
		}
		return false
	})
	s := f.open(t)
	ctx := t.Context()
	for i := range 50 {
		if err := put(ctx, s, fmt.Sprint("o", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	// A folder made by a console, and objects of others.
	for _, key := range []string{"a/prefix/", "a/prefix/x/", "a/prefix/x/.o.tmp", "a/prefix2/o", "a/o"} {
		if err := f.objects.Put(ctx, key, strings.NewReader(""), 0); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := names(ctx, s); err != nil || len(all) != 50 {
		t.Errorf("%d of 50, %v", len(all), err)
	}
	fail.Store(true)
	_, err := names(ctx, s)
	refused(t, err, "list *: ")
	fail.Store(false)
	cancelled, cancel := context.WithCancel(ctx)
	err = s.List(cancelled, "", func(backup.Object) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A download that is cut goes on at the same position. If the object has been replaced
// meanwhile there is nothing to go on with.
func TestCutDownloads(t *testing.T) {
	pieces := int64(5)
	var stuck atomic.Bool
	var f *fake
	f = newFake(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != "GET" || !strings.HasSuffix(r.URL.Path, "/object") {
			return false
		}
		// Send as much as allowed, then cut the connection.
		cut := &cutting{ResponseWriter: w, left: int64(len(two))/pieces + 1}
		if stuck.Load() && r.Header.Get("Range") != "" {
			cut.left = 0
		}
		f.get(cut, r, "a/prefix/object")
		return true
	})
	s := f.open(t)
	ctx := t.Context()
	if err := put(ctx, s, "object", two); err != nil {
		t.Fatal(err)
	}
	got, err := get(ctx, s, "object")
	if err != nil || !bytes.Equal(got, two) {
		t.Fatalf("%d of %d bytes, %v", len(got), len(two), err)
	}
	if n, first := f.count("GET object"), f.count("GET object bytes="); int64(n) != pieces || first != n-1 {
		t.Errorf("%d requests, %d of them for the rest, want %d in all", n, first, pieces)
	}

	stuck.Store(true)
	_, err = get(ctx, s, "object")
	refused(t, err, "read object: unexpected EOF")
	stuck.Store(false)

	r, err := s.Get(ctx, "object")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadFull(r, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := put(ctx, s, "object", bytes.ToUpper(two)); err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, r)
	refused(t, err, "the object was replaced while it was read")
}

// cutting ends the connection after some bytes.
type cutting struct {
	http.ResponseWriter
	left int64
}

func (c *cutting) Write(p []byte) (int, error) {
	if c.left <= 0 {
		c.ResponseWriter.(http.Flusher).Flush() // the head gets through
		panic(http.ErrAbortHandler)
	}
	n, err := c.ResponseWriter.Write(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

// Bytes that change on the way are refused.
func TestDamagedUploads(t *testing.T) {
	f := newFake(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == "PUT" && r.URL.Query().Get("partNumber") != "1" {
			r.Body = &flipping{r.Body}
		}
		return false
	})
	s := f.open(t)
	ctx := t.Context()
	for _, data := range [][]byte{[]byte("one"), two} {
		refused(t, put(ctx, s, "object", data), "the bytes were damaged on the way and refused")
		if _, err := get(ctx, s, "object"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
	}
	if n := f.openUploads(); n != 0 {
		t.Errorf("%d uploads are open", n)
	}
}

// flipping changes a bit of the first byte of each read.
type flipping struct{ io.ReadCloser }

func (f *flipping) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if n > 0 {
		p[0] ^= 1
	}
	return n, err
}

// A failed upload in parts leaves nothing, whenever it fails.
func TestFailedParts(t *testing.T) {
	for name, at := range map[string]func(r *http.Request) bool{
		"begin": func(r *http.Request) bool { return r.Method == "POST" && r.URL.Query().Has("uploads") },
		"part":  func(r *http.Request) bool { return r.URL.Query().Get("partNumber") == "2" },
		"end":   func(r *http.Request) bool { return r.Method == "POST" && r.URL.Query().Has("uploadId") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, func(w http.ResponseWriter, r *http.Request) bool {
				if !at(r) {
					return false
				}
				// The end of an upload may take so long that a failure comes behind a 200.
				status := map[bool]int{true: 200, false: 403}[name == "end"]
				refuse(w, status, "AccessDenied")
				return true
			})
			s := f.open(t)
			refused(t, put(t.Context(), s, "object", two), "which come from the options, need s3:ListBucket")
			if all, err := names(t.Context(), s); err != nil || len(all) > 0 || f.openUploads() > 0 {
				t.Errorf("%q, %v, %d uploads are open", all, err, f.openUploads())
			}
		})
	}
}

// A request to a silent server ends with the context, also an upload in parts that the
// server should drop.
func TestCancelledWhileTheServerIsSilent(t *testing.T) {
	var silent atomic.Bool
	asked, done := make(chan struct{}, 100), make(chan struct{})
	f := newFake(t, func(w http.ResponseWriter, r *http.Request) bool {
		// The parts of an upload go through, and its end does not.
		if !silent.Load() || r.URL.Query().Has("uploads") || r.URL.Query().Has("partNumber") {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		<-done
		return true
	})
	t.Cleanup(func() { close(done) })
	s := f.open(t)
	if err := put(t.Context(), s, "object", []byte("before")); err != nil {
		t.Fatal(err)
	}
	silent.Store(true)
	for name, do := range map[string]func(ctx context.Context) error{
		"Put":       func(ctx context.Context) error { return put(ctx, s, "object", []byte("after")) },
		"large Put": func(ctx context.Context) error { return put(ctx, s, "object", two) },
		"Delete":    func(ctx context.Context) error { return s.Delete(ctx, "object") },
		"Get":       func(ctx context.Context) error { _, err := get(ctx, s, "object"); return err },
		"List":      func(ctx context.Context) error { _, err := names(ctx, s); return err },
		"Open":      func(ctx context.Context) error { _, err := Open(ctx, f.options()); return err },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			returned := make(chan error, 1)
			go func() { returned <- do(ctx) }()
			<-asked
			cancel()
			select {
			case err := <-returned:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%v", err)
				}
			case <-time.After(time.Minute):
				t.Fatal("it waits for the server")
			}
		})
	}
}

// unknownHost finds no server, whatever names and proxies there are on the network of the test.
var unknownHost = &http.Transport{DialContext: func(_ context.Context, network, address string) (net.Conn,
	error) {
	return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: address,
		IsNotFound: true}}
}}

// Errors of Open say what is wrong and what to do.
func TestOpenErrors(t *testing.T) {
	serve := func(t *testing.T, status int, body string) Options {
		s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}))
		t.Cleanup(s.Close)
		return Options{Endpoint: s.URL, Bucket: "bucket", AccessKeyID: "key", SecretAccessKey: "hunter2",
			Tries: 1, Region: "x", Transport: s.Client().Transport}
	}
	code := func(status int, code, more string) func(t *testing.T) Options {
		return func(t *testing.T) Options {
			return serve(t, status, `<Error><Code>`+code+`</Code><Message>No.</Message>`+more+`</Error>`)
		}
	}
	for name, c := range map[string]struct {
		options func(t *testing.T) Options
		want    string
	}{
		"bucket": {code(404, "NoSuchBucket", ""),
			"s3://bucket: look into the bucket: No (NoSuchBucket): create the bucket at https://"},
		"key": {code(403, "InvalidAccessKeyId", ""),
			"check the credentials, which come from the options"},
		"secret": {code(403, "SignatureDoesNotMatch", ""),
			"check the secret key, which comes from the options"},
		"rights": {code(403, "AccessDenied", ""), "need s3:ListBucket on the bucket"},
		"token":  {code(400, "ExpiredToken", ""), "get new credentials"},
		"clock":  {code(403, "RequestTimeTooSkewed", ""), "set the clock of this machine"},
		"region": {code(400, "AuthorizationHeaderMalformed", "<Region>mars-1</Region>"),
			"add region=mars-1 to the URL"},
		"full":    {code(507, "QuotaExceeded", ""), "prune old backups"},
		"down":    {code(503, "ServiceUnavailable", ""), "try again later"},
		"archive": {code(403, "InvalidObjectState", ""), "bring it back"},
		"not S3": {func(t *testing.T) Options { return serve(t, 200, "<html>Welcome</html>") },
			"is an S3 server"},
		"nothing": {func(t *testing.T) Options { return serve(t, 200, "") }, "is an S3 server"},
		"not found": {func(t *testing.T) Options { return serve(t, 404, "404 page not found") },
			"create the bucket at"},
		"authority": {func(t *testing.T) Options { o := serve(t, 200, ""); o.Transport = nil; return o },
			"SSL_CERT_FILE"},
		"no TLS": {func(t *testing.T) Options {
			s := httptest.NewServer(http.NotFoundHandler())
			t.Cleanup(s.Close)
			o := serve(t, 200, "")
			o.Endpoint = strings.Replace(s.URL, "http:", "https:", 1)
			return o
		}, "the server has no TLS: if that is meant to be, give endpoint=http://127.0.0.1:"},
		"TLS": {func(t *testing.T) Options {
			o := serve(t, 200, "")
			o.Endpoint = strings.Replace(o.Endpoint, "https:", "http:", 1)
			return o
		}, "give endpoint=https://127.0.0.1:"},
		"no server": {func(*testing.T) Options {
			return Options{Endpoint: "http://127.0.0.1:1", Bucket: "bucket", AccessKeyID: "k",
				SecretAccessKey: "hunter2", Tries: 1}
		}, "check that a server runs at http://127.0.0.1:"},
		"no host": {func(*testing.T) Options {
			return Options{Endpoint: "https://nobody.invalid", Bucket: "bucket", AccessKeyID: "k",
				SecretAccessKey: "hunter2", Tries: 1, Transport: unknownHost}
		}, "check the endpoint https://nobody.invalid, and the network"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), c.options(t))
			refused(t, err, c.want)
		})
	}
}

// refused checks an error: it has one prefix, and contains want.
func refused(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", want)
	}
	if !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "fddhdb: ") ||
		strings.Count(err.Error(), "fddhdb: ") != 1 {
		t.Errorf("%q, want %q, and fddhdb: once", err, want)
	}
	if strings.Contains(err.Error(), "secret key:") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%q tells a secret", err)
	}
}
