// Fddhdb-cluster runs the nodes of a cluster, and is the command line of clusters: it creates, fills,
// searches and backs up clusters. See package cluster, and fddhdb-cluster help.
//
// The verbs about collections and items are those of fddhdb (package command), over the cluster as a database
// of package api. Each other verb is a function that returns its cobra.Command, in the file of that name or
// beside related verbs.
// An env has the state that verbs share: the global flags, the printer, and the connection to a cluster.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
)

func main() {
	exit.AbortOnCrash()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(runLine(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
