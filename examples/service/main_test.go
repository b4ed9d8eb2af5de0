package main

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// Ann may do everything, others look at one collection, and strangers see nothing.
func TestService(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, filepath.Join(t.TempDir(), "db"), l) }()
	for _, x := range []struct {
		user, method, path, body string
		want                     int
	}{
		{"ann", "PUT", "/v1/photos/collections/main", `{"bits": 16}`, 200},
		{"ann", "PUT", "/v1/photos/collections/main/items/x", `{"code": "0102"}`, 200},
		{"bob", "POST", "/v1/photos/collections/main:search", `{"code": "0102"}`, 200},
		{"bob", "DELETE", "/v1/photos/collections/main/items/x", "", 403},
		{"bob", "GET", "/v1/photos/collections/other", "", 403},
		{"", "GET", "/v1/photos/collections", "", 401},
		{"", "GET", "/", "", 200},
	} {
		r, err := http.NewRequest(x.method, "http://"+l.Addr().String()+x.path, strings.NewReader(x.body))
		if err != nil {
			t.Fatal(err)
		}
		if x.user != "" {
			r.SetBasicAuth(x.user, "secret")
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != x.want {
			t.Errorf("%+v: %s", x, answer.Status)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
