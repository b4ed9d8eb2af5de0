package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/fddhdb/fddhdb/db"
)

var schema = db.Schema{
	Modalities: []db.Modality{{Name: "image", Dim: 4}, {Name: "text", Dim: 3}},
	Fields:     []db.Field{{Name: "title", Type: db.String, Indexed: true}},
}

// grace is the time that running requests have when the service ends.
var grace = 10 * time.Second

func main() {
	address := flag.String("addr", "localhost:8080", "address to listen at; port 0 is any that is free")
	dir := flag.String("dir", "service.fddhdb", "folder of the database, made where there is none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *dir, *address, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx ends. Then it takes no more requests, waits for the running
// ones, and closes the database. It returns an error of Close, because Close makes
// everything durable.
func run(ctx context.Context, dir, address string, out io.Writer) (err error) {
	d, err := db.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	c, err := d.EnsureCollection(ctx, "main", schema)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	requests, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	server := &http.Server{
		Handler: newService(c), BaseContext: func(net.Listener) context.Context { return requests },
		ReadHeaderTimeout: quick, ReadTimeout: 2 * quick, WriteTimeout: 4 * quick, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	fmt.Fprintf(out, "serving at http://%s\n", listener.Addr())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	for range 2 {
		ending, stop := context.WithTimeout(context.Background(), grace)
		err = server.Shutdown(ending)
		stop()
		if err == nil {
			fmt.Fprintln(out, "all requests have ended")
			return nil
		}
		giveUp() // a cancelled training leaves the database as it was
	}
	return errors.Join(errors.New("requests were cut off"), server.Close())
}
