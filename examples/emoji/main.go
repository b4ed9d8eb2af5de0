package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/term"
)

func main() {
	opt, err := parseArgs(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "emoji:", err)
		os.Exit(1)
	}
	// After each of these signals there has to be time to remove the temporary
	// database. SIGPIPE comes at the end of `| head`.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGPIPE)
	defer stop()
	if term.IsTerminal(int(os.Stdin.Fd())) {
		opt.prompt = os.Stdin
	}
	if opt.encode {
		err = encode(ctx, opt.db, os.Stdin, os.Stdout)
	} else {
		err = run(ctx, opt, os.Stdout)
	}
	if err != nil {
		if errors.Is(err, context.Canceled) {
			err = errors.New("interrupted")
		}
		fmt.Fprintln(os.Stderr, "emoji:", err)
		os.Exit(1)
	}
}

// options holds the values of the command line.
type options struct {
	db      string    // folder to keep the database in; "" for a temporary one
	encode  bool      // make vectors of the lines of the input, and nothing else
	queries []string  // to answer instead of the demonstration
	prompt  io.Reader // where a person types queries; nil if there is no person
}

// parseArgs reads the command line. If that asks for help, the help is written to help,
// and the error is flag.ErrHelp.
func parseArgs(args []string, help io.Writer) (options, error) {
	var opt options
	flags := flag.NewFlagSet("emoji", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // it would print errors that main prints, too
	flags.StringVar(&opt.db, "db", "", "keep the database in `DIR`, or use the one that is there")
	flags.BoolVar(&opt.encode, "encode", false,
		"print a vector for each line of the input, with the words of --db, for fddhdb explore")
	flags.Usage = func() {}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(help, "usage: go run . [flags] [QUERY...]\n\nA QUERY is an emoji, to find words, or words, to find emoji.\n\n")
		flags.SetOutput(help)
		flags.PrintDefaults()
		return opt, err
	case err != nil:
		return opt, fmt.Errorf("%w: -h lists the flags", err)
	}
	opt.queries = flags.Args()
	switch {
	case opt.encode && opt.db == "":
		return opt, errors.New("--encode needs the database whose words it knows: --db DIR")
	case opt.encode && len(opt.queries) > 0:
		return opt, errors.New("--encode reads its input: there are no queries with it")
	}
	for _, query := range opt.queries {
		if strings.HasPrefix(query, "-") {
			return opt, fmt.Errorf("%s comes after the first query: put flags before it", query)
		}
	}
	// A relative path starts in this folder, not where `go -C` was typed. So the output
	// names an absolute path.
	if opt.db == "" {
		return opt, nil
	}
	var err error
	opt.db, err = filepath.Abs(opt.db)
	return opt, err
}

// run opens or builds the database and answers the queries. Without queries it shows
// the demonstration, and then asks for queries if there is a prompt.
func run(ctx context.Context, opt options, out io.Writer) (err error) {
	start := time.Now()
	fmt.Fprint(out, "Find emoji by words and words by emoji, with binary codes that fddhdb learns from\n"+
		"pictures and names that are labelled by group. No pre-trained network, no server.\n\n")
	dir := opt.db
	if dir == "" {
		if dir, err = os.MkdirTemp("", "fddhdb-emoji-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	f, err := openFinder(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if f.complete() {
		fmt.Fprintf(out, "Reusing the database in %s: %d emoji, %d of them learned from.\n", dir,
			len(f.entries), f.learned)
	} else {
		if err := f.build(ctx, out); err != nil {
			return err
		}
		if opt.db != "" {
			fmt.Fprintf(out, "The database stays in %s.\n", dir)
		}
	}

	if len(opt.queries) > 0 {
		_, err = f.reply(ctx, opt.queries, out)
	} else {
		err = f.demonstrate(ctx, out)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%.1f s in all.", time.Since(start).Seconds())
	if len(opt.queries) > 0 {
		fmt.Fprintln(out)
		return nil
	}
	if opt.prompt == nil {
		fmt.Fprint(out, " Ask it yourself: go -C examples/emoji run . \"red heart\" moon 🐱\n")
		return nil
	}
	fmt.Fprint(out, " Now you: type words or one emoji; an empty line ends.\n")
	return f.converse(ctx, opt.prompt, out)
}

// inParallel calls work(0) to work(n-1) on all cores and returns the first error. It
// calls newWork once for each goroutine. So work may have state that goroutines must
// not share.
func inParallel(ctx context.Context, n int, newWork func() (work func(i int) error)) error {
	workers := runtime.GOMAXPROCS(0)
	group, ctx := errgroup.WithContext(ctx)
	for first := range workers {
		group.Go(func() error {
			work := newWork()
			for i := first; i < n; i += workers {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := work(i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
