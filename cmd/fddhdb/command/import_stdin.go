package command

import (
	"context"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// stdinName is the name that stands for standard input.
const stdinName = "-"

// fromStdin returns how many files are standard input.
func (o *importOptions) fromStdin() (n int) {
	if o.items == stdinName {
		n++
	}
	for _, v := range o.vectors.List {
		if v.Value == stdinName {
			n++
		}
	}
	return n
}

// readStdin copies standard input, if a file is -.
func (e *env) readStdin(ctx context.Context, o *importOptions, bar *term.Progress) (err error) {
	switch {
	case o.fromStdin() == 0:
		return nil
	case e.session != nil:
		return exit.Usagef("-: the shell reads its lines from standard input: import from a file, or outside of the shell")
	}
	o.stdin, err = source.ReadStdin(ctx, e.stdin, o.items == "", func(bytes int64) {
		bar.Bytes("reading standard input", bytes, 0)
	})
	return err
}

// input returns what a flag names: the file, or for "-" the copy of standard input.
func (o *importOptions) input(file string) source.Input {
	if file == stdinName && o.stdin != nil {
		return o.stdin.Input
	}
	return source.Input{Path: file, Name: file}
}
