package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/server"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/cluster"
)

func serveCommand(e *env) *cobra.Command {
	var o server.Flags
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Serve the cluster by HTTP",
		GroupID: groupCluster,
		Long: usage.Prose(`
			Serve prints a URL and answers requests by HTTP, those of fddhdb serve, until an
			interrupt or SIGTERM. The verbs of fddhdb, and programs with package db/client, work
			with the URL. What a cluster cannot do has the status 501. Any number of servers may
			serve a cluster.

			On a loopback address everybody on this machine may do what the credentials of the
			server allow. On another address requests need a token of the file --tokens, which
			fddhdb token makes, and the server a certificate, or --plain if a proxy in front of
			it has one. SIGHUP reads tokens and certificate again.

			At SIGTERM it takes no new requests, gives those under way five seconds, and ends
			jobs, such as trainings, at once.`),
		Example: usage.Example(`
			fddhdb-cluster serve --address 127.0.0.1:7070
			fddhdb count http://127.0.0.1:7070/main --collection photos`),
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			return e.word(e.serve(cmd.Context(), &o))
		},
	}
	o.Register(cmd.Flags())
	return cmd
}

// serve serves the cluster until the context ends.
func (e *env) serve(ctx context.Context, o *server.Flags) (err error) {
	files, err := o.Open()
	if err != nil {
		return err
	}
	nc, err := e.link.connect("serve", func(err error) {
		e.Warnf("the NATS servers refuse something: %v",
			err)
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
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for {
			select {
			case <-hangup:
				if err := files.Load(); err != nil {
					e.Warnf("SIGHUP: the tokens and the certificate are those of before: %v", err)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	all := map[string]api.Database{e.link.cluster: c.Database(cluster.DatabaseOptions{})}
	return files.Run(ctx, server.Config{Databases: all, Log: e.Stderr,
		Ready: func(url string, names []string) (err error) {
			url += "/" + e.link.cluster
			if e.json {
				err = e.PrintJSON(map[string]string{"url": url})
			} else {
				e.Printf("%s\n", url)
			}
			return errors.Join(err, e.Stdout.Flush())
		}})
}
