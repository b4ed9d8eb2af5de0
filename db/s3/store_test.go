package s3

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/backup/storetest"
)

// Servers of tests need no time to recover.
func TestMain(m *testing.M) {
	minio.DefaultRetryUnit, minio.DefaultRetryCap = time.Millisecond, 10*time.Millisecond
	os.Exit(m.Run())
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) backup.Store { return newFake(t, nil).open(t) })
}

// After an answer or an error the body belongs to the client again, whatever a server
// does with the request: the race detector checks it. The answer can be read.
func TestBodyIsLeft(t *testing.T) {
	const answerBytes = 100_000 // more than one packet
	for name, serve := range map[string]http.HandlerFunc{
		"refused at once": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write(make([]byte, answerBytes))
		},
		"refused in the middle": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.CopyN(io.Discard, r.Body, 100_000)
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write(make([]byte, answerBytes))
		},
		"cut": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.CopyN(io.Discard, r.Body, 100_000)
			panic(http.ErrAbortHandler)
		},
		"taken": func(w http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			_, _ = w.Write(make([]byte, n/20))
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(serve)
			defer server.Close()
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: leavesBody{transport}}
			body := bytes.NewReader(make([]byte, 20*answerBytes))
			for range 10 {
				if _, err := body.Seek(0, io.SeekStart); err != nil {
					t.Fatal(err)
				}
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL,
					io.NopCloser(body))
				if err != nil {
					t.Fatal(err)
				}
				r.ContentLength = body.Size()
				resp, err := client.Do(r)
				if name == "cut" {
					if err == nil || errors.Is(err, errAnswered) {
						t.Errorf("%v, %v", resp, err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, resp.Body); n != answerBytes || err != nil {
					t.Errorf("%d bytes of the answer, %v", n, err)
				}
				if err := resp.Body.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
