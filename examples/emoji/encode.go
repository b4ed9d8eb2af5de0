package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/fddhdb/fddhdb/db"
)

// encode makes vectors of words, as an encoder that `fddhdb encoder` stores. It reads one text
// a line, and writes one vector a line, as the numbers that are not 0. It needs the
// database only for the learned names. It opens it read-only, so that others can have
// it open meanwhile.
func encode(ctx context.Context, dir string, in io.Reader, out io.Writer) error {
	words, err := readVocabulary(ctx, dir)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	printed := json.NewEncoder(w)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		text := strings.TrimSpace(lines.Text())
		var answer any
		if features, ok := words.embedQuestion(text); ok {
			answer = sparse(features)
		} else {
			answer = map[string]string{"error": fmt.Sprintf("nothing in %q is like a word of the names learned from", text)}
		}
		if err := errors.Join(printed.Encode(answer), w.Flush()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// readVocabulary returns the vocabulary of the names that training saw.
func readVocabulary(ctx context.Context, dir string) (*vocabulary, error) {
	d, err := db.Open(dir, &db.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	f := &finder{db: d}
	err = errors.Join(f.load(ctx), f.close())
	if err == nil && !f.complete() {
		err = errors.New("the database is not complete: build it first, without --encode")
	}
	return f.words, err
}

// sparse keeps the numbers that are not 0.
func sparse(features []float32) db.Sparse {
	var x db.Sparse
	for i, v := range features {
		if v != 0 {
			x.Index, x.Value = append(x.Index, uint32(i)), append(x.Value, v)
		}
	}
	return x
}
