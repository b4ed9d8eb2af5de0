package common

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

// A Command runs a command line without the name of the program.
type Command func(ctx context.Context, args []string, stdout, stderr io.Writer) error

// Main runs the command line of the process. An interrupt ends the context. An error is
// printed after the name of the program, and the process ends with status 1.
func Main(name string, command Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
