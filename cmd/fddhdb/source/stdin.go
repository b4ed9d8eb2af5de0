package source

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
)

// An Input is a file of a verb: where it is, and what errors call it.
type Input struct{ Path, Name string }

// A Stdin is standard input in a temporary file, as files are read more than once.
type Stdin struct {
	Input
	folder string
}

// Close removes the file.
func (s *Stdin) Close() error { return os.RemoveAll(s.folder) }

// ReadStdin copies standard input to a temporary file, whose extension is that of its format, by the first
// bytes. Only vectors may be a .npy. read is told the bytes so far, by another goroutine.
func ReadStdin(ctx context.Context, in io.Reader, vectors bool,
	read func(bytes int64)) (_ *Stdin, err error) {
	folder, err := os.MkdirTemp("", "fddhdb-stdin-")
	if err != nil {
		return nil, err
	}
	s := &Stdin{Input{Name: "standard input"}, folder}
	defer func() {
		if err != nil {
			_ = s.Close() // the error that is returned says more
		}
	}()
	ended := make(chan error, 1)
	go func() { ended <- s.copy(ctx, bufio.NewReaderSize(in, 1<<20), vectors, read) }()
	select {
	case err = <-ended:
		return s, err
	case <-ctx.Done():
		// A read from a terminal does not end by itself. The process does soon.
		return nil, ctx.Err()
	}
}

// copy writes the file.
func (s *Stdin) copy(ctx context.Context, in *bufio.Reader, vectors bool, read func(bytes int64)) error {
	format, err := sniff(in, vectors)
	if err != nil {
		return err
	}
	s.Path = filepath.Join(s.folder, "stdin."+format)
	f, err := os.Create(s.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	block, done := make([]byte, 1<<20), int64(0)
	for ctx.Err() == nil {
		n, err := in.Read(block)
		if _, err := f.Write(block[:n]); err != nil {
			return fmt.Errorf("copy standard input: %w", err)
		}
		if done += int64(n); ctx.Err() == nil {
			read(done)
		}
		if err == io.EOF {
			return f.Close()
		}
		if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
	}
	return ctx.Err()
}

// sniff tells the format by the first bytes, which stay to be read.
func sniff(in *bufio.Reader, vectors bool) (string, error) {
	head, err := in.Peek(512)
	if err != nil && err != io.EOF {
		return "", fmt.Errorf("standard input: %w", err)
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	switch {
	case len(text) == 0:
		return "", exit.Failedf("standard input is empty")
	case bytes.HasPrefix(head, []byte("\x93NUMPY")) && vectors:
		return "npy", nil
	case bytes.IndexByte(head, 0) >= 0 || bytes.HasPrefix(head, []byte("PAR1")) ||
		bytes.HasPrefix(head, []byte("\x93NUMPY")):
		return "", exit.Failedf("standard input is no text: .jsonl and .csv are read from it, and .npy for --vectors; write other formats to a file")
	case text[0] == '{' || text[0] == '[':
		return "jsonl", nil
	}
	return "csv", nil
}
