// Fddhdb-beam learns models, encodes items and builds databases from files of any size, by pipelines of
// Apache Beam. See package beam, and fddhdb-beam help.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/s3"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db/beam"
)

func main() {
	exit.AbortOnCrash()
	// Beam starts this program as a worker, with flags of its own.
	switch args := workerArgs(os.Args[1:]); {
	case args != nil:
		work(args)
		return
	case boots(os.Args[1:]):
		if err := boot(context.Background(), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "fddhdb-beam: worker:", err)
			os.Exit(exit.Failed)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command().ExecuteContext(ctx)
	err = outcome(errors.Join(err, beam.Cleanup()))
	if err != nil {
		fmt.Fprintln(os.Stderr, "fddhdb-beam:", term.Plain(exit.Message(err)))
	}
	os.Exit(exit.Code(err))
}

// outcome returns an error in the terms of package exit: what is wrong with the input is no mistake in the
// command line.
func outcome(err error) error {
	var bad *beam.InputError
	if errors.As(err, &bad) {
		return exit.Failedf("%w", err)
	}
	return err
}

// work is a worker until Beam ends it.
func work(args []string) {
	if err := flag.CommandLine.Parse(args); err != nil { // flag prints the error and exits
		os.Exit(exit.Usage)
	}
	quiet("warn")
	sdk.Init()
}
