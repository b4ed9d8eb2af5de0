package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/serve"
)

// grace is how long requests have to end when the server does.
const grace = 8 * time.Second

func serveCommand(e *env) *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Serve the cluster by HTTP",
		GroupID: groupCluster,
		Long: usage.Prose(`
			Serve prints a URL and answers requests by HTTP, those of fddhdb serve, until an
			interrupt or SIGTERM. The verbs of fddhdb, and programs with package db/client, work
			with the URL. What a cluster cannot do has the status 501. Any number of servers may
			serve a cluster.

			At SIGTERM it takes no new requests, gives those under way 8 seconds, and ends jobs,
			such as trainings, at once. Only this machine is served, and everybody who works on
			it may do what the credentials of the server allow.`),
		Example: usage.Example(`
			fddhdb-cluster serve --address 127.0.0.1:7070
			fddhdb count http://127.0.0.1:7070/main --collection photos`),
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if host, _, err := net.SplitHostPort(address); err != nil || !serve.IsLoopback(host) {
				return exit.Usagef("--address %q: HOST:PORT of this machine is expected, such as 127.0.0.1:7070: there are no tokens for other machines yet", address)
			}
			return e.word(e.serve(cmd.Context(), address))
		},
	}
	cmd.Flags().StringVar(&address, "address", "127.0.0.1:7070",
		"serve on `HOST:PORT` of this machine; port 0 is a free one")
	return cmd
}

// serve serves the cluster until the context ends.
func (e *env) serve(ctx context.Context, address string) (err error) {
	log := slog.New(slog.NewTextHandler(e.Stderr, nil))
	nc, err := e.link.connect("serve", func(err error) {
		log.Error("the NATS servers refuse something",
			"error", err)
	})
	if err != nil {
		return err
	}
	defer nc.Close()
	c, err := e.client(ctx, nc)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	s, err := serve.New(map[string]api.Database{e.link.cluster: c.Database(cluster.DatabaseOptions{})},
		serve.Options{Logger: log, Version: version})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return exit.Failedf("--address %s: %w: give another port, or 0 for a free one", address, err)
	}
	server := &http.Server{Handler: serve.Local(s), ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	url := "http://" + l.Addr().String() + "/" + e.link.cluster
	if e.json {
		err = e.PrintJSON(map[string]string{"url": url})
	} else {
		e.Printf("%s\n", url)
	}
	if err = errors.Join(err, e.Stdout.Flush()); err == nil {
		select {
		case err = <-ended: // it cannot go on
		case <-ctx.Done():
		}
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	return errors.Join(err, s.Shutdown(ending), server.Close())
}
