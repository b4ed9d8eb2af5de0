// Service mounts the HTTP interface of a database in a program of its own, with its own authentication:
//
//	go run ./examples/service
//
//	curl -u ann:secret localhost:8080/v1/photos/collections
//	curl -u ann:secret -X PUT -d '{"bits": 64}' localhost:8080/v1/photos/collections/main
//
// The program owns the database, and serves it to the verbs of fddhdb, too: while it runs,
// fddhdb count service.fddhdb works through it. TestService asks it for what it may and may not give.
package main

import (
	"context"
	"crypto/subtle"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/attach"
	"github.com/fddhdb/fddhdb/db/serve"
)

func main() {
	dir := flag.String("dir", "service.fddhdb", "the folder of the database")
	address := flag.String("addr", "localhost:8080", "where to serve")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("tcp", *address)
	if err == nil {
		fmt.Println("serving on", l.Addr())
		err = run(ctx, *dir, l)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run serves the database in dir until the context ends.
func run(ctx context.Context, dir string, l net.Listener) error {
	d, err := attach.Open(ctx, dir, attach.Options{})
	if err != nil {
		return err
	}
	defer d.Close()
	s, err := serve.New(map[string]api.Database{"photos": d}, serve.Options{Access: who})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", s)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "a page of your own")
	})
	return serve.Serve(ctx, s, mux, l, nil)
}

// who says who sends a request, and what they may do. Yours asks your users' database, or a session.
func who(r *http.Request) (*serve.Access, error) {
	name, password, _ := r.BasicAuth()
	if subtle.ConstantTimeCompare([]byte(password), []byte("secret")) == 0 {
		return nil, serve.ErrUnauthorized
	}
	if name == "ann" {
		return &serve.Access{Name: name, Scope: serve.Admin}, nil
	}
	return &serve.Access{Name: name, Scope: serve.Read, Collections: []string{"main"}}, nil
}
