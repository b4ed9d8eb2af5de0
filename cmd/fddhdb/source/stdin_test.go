package source

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// What the first bytes say decides on the format, and all bytes are in the file.
func TestReadStdin(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1}`:            "jsonl",
		"\ufeff\n {\"a\":1}": "jsonl",
		"a,b\n1,2\n":         "csv",
		"[1,2]":              "jsonl",
		"\x93NUMPY\x01":      "npy",
		"\x93NUM":            "csv",
	} {
		s, err := ReadStdin(t.Context(), strings.NewReader(text), true, func(int64) {})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		b, err := os.ReadFile(s.Path)
		if err != nil || string(b) != text || !strings.HasSuffix(s.Path, "."+want) {
			t.Errorf("%q: %q in %s, %v", text, b, s.Path, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.Path); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", s.Path, err)
		}
	}
	broken := errors.New("broken")
	if _, err := ReadStdin(t.Context(), io.MultiReader(strings.NewReader("a,b\n"), errReader{broken}), false,
		func(int64) {}); !errors.Is(err, broken) {
		t.Error(err)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// An import that waits for its input ends when it is interrupted.
func TestReadStdinInterrupted(t *testing.T) {
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = w.Write([]byte("a,b\n")) // returns when it has been read
		cancel()
	}()
	if _, err := ReadStdin(ctx, r, false, func(int64) {}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := w.Close(); err != nil { // ends the goroutine that reads
		t.Error(err)
	}
}
