package main

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/client"
)

// A served cluster is a database behind a URL, and a server ends at SIGTERM.
func TestServe(t *testing.T) {
	t.Parallel()
	s := build(t, 1, "")
	s.node("a")
	eventually(t, "the node answers", func() bool {
		_, _, code := s.try("", "create", "--shards", "2", "--replicas", "1", "--servers-per-log", "1",
			"--log-bytes", "64MiB")
		return code == 0
	})
	server := s.command(t.Context(), "serve", "--address", "127.0.0.1:0")
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Process.Kill() }()
	url, err := bufio.NewReader(out).ReadString('\n')
	if url = strings.TrimSpace(url); err != nil || !strings.HasSuffix(url, "/main") {
		t.Fatal(url, err)
	}

	d, err := client.Open(url, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	codes, err := d.CreateCollection(t.Context(), "codes", db.Schema{Bits: 8})
	if err != nil {
		t.Fatal(err)
	}
	b := d.NewBatch()
	for i := range 30 {
		if err := b.Put(codes, &db.Item{Key: fmt.Sprint("k", i), Code: []byte{byte(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, err := codes.Search(t.Context(), db.Query{Code: []byte{7}, K: 3}); err != nil || len(r.Hits) != 3 ||
		r.Hits[0].Key != "k7" {
		t.Error(r, err)
	}
	if got := s.ok("count", "--collection", "codes"); got != "30\n" {
		t.Error(got)
	}
	if err := codes.PutIf(t.Context(), &db.Item{Key: "k7", Code: []byte{1}}, nil); !errors.Is(err,
		db.ErrConflict) {
		t.Error(err)
	}
	if _, err := d.Mark(t.Context(), "x"); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	for _, err := range codes.Items(t.Context(), "") {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Error(err)
		}
	}
	q, err := http.NewRequest(http.MethodGet, strings.TrimSuffix(url, "/main")+"/v1", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Host = "example.org"
	r, err := http.DefaultClient.Do(q)
	if err != nil || r.StatusCode != http.StatusForbidden {
		t.Error(r, err)
	}
	s.fails(1, []string{"serve", "--address", strings.Split(url, "/")[2]}, "give another port")

	begin := time.Now()
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err = server.Wait()
	var failed *exec.ExitError
	if errors.As(err, &failed) || time.Since(begin) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}
