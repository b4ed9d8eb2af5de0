package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/attach"
)

// hitsPerQuery is the number of hits in an answer.
const hitsPerQuery = 10

// An answer is the result of one query.
type answer struct {
	query   string
	picture *entry   // the entry of the picture that is the query; nil for a query by words
	unknown []string // words of the query that no training name has
	hits    []entry  // best first, without picture itself
}

// A puzzle is the reason why a query cannot be answered.
type puzzle string

func (p puzzle) Error() string { return string(p) }

// ask answers a query. An emoji is answered with words, words are answered with emoji.
// The database finds everything by code. A query that cannot be
// answered gives a puzzle.
func (f *finder) ask(ctx context.Context, query string) (answer, error) {
	query = strings.TrimSpace(query)
	a := answer{query: query}
	q := db.Query{K: hitsPerQuery}
	if e, ok := f.lookup(query); ok {
		a.picture = &e
		q.Key, q.From, q.To = e.key, "picture", "words"
		q.K++ // it may find itself, which is left out
	} else {
		if !strings.ContainsFunc(query,
			func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			return a, puzzle(fmt.Sprintf("%q is neither words nor one emoji that is in the database", query))
		}
		vector, ok := f.words.embedQuestion(query)
		if !ok {
			return a, puzzle(fmt.Sprintf("%q: nothing in it is like a word of the names learned from", query))
		}
		a.unknown = f.words.unknownWords(query)
		q.Vector, q.From, q.To = vector, "words", "picture"
	}
	found, err := f.emoji.Search(ctx, q)
	if err != nil {
		return a, err
	}
	for _, hit := range found.Hits {
		if hit.Key != q.Key {
			a.hits = append(a.hits, f.entries[pictureID(hit.Key)])
		}
	}
	a.hits = a.hits[:min(hitsPerQuery, len(a.hits))]
	return a, nil
}

// lookup finds an emoji as people type it: in any skin tone, with or without
// variation selectors.
func (f *finder) lookup(text string) (entry, bool) {
	plain := strings.Map(func(r rune) rune {
		if hasSkinTone(string(r)) {
			return -1
		}
		return r
	}, text)
	e, ok := f.entries[pictureID(plain)]
	return e, ok
}

// The columns of an answer on a terminal.
const (
	queryColumns = 20
	lineColumns  = 90
)

// print shows an answer. A star marks an emoji that training did not see.
func (a answer) print(out io.Writer) {
	heading := a.query
	if a.picture != nil {
		heading = a.picture.key + "  " + a.picture.starred(a.picture.name)
	}
	indent := strings.Repeat(" ", 2+queryColumns)
	missing := queryColumns - uniseg.StringWidth(heading)
	if missing > 1 {
		fmt.Fprint(out, "  ", heading, strings.Repeat(" ", missing))
	} else {
		fmt.Fprint(out, "  ", heading, "\n", indent)
	}
	if a.picture == nil {
		var pictures []string
		for _, e := range a.hits {
			pictures = append(pictures, e.starred(e.key))
		}
		fmt.Fprint(out, strings.Join(pictures, "  "), "\n", indent)
	}
	fmt.Fprintln(out, a.names(lineColumns-len(indent)))
	if len(a.unknown) > 0 {
		fmt.Fprintf(out, "%s(no name learned from has %s: only its letters count)\n", indent,
			quoted(a.unknown))
	}
}

// names lists as many names of hits as fit into columns.
func (a answer) names(columns int) string {
	line := ""
	for i, e := range a.hits {
		longer := line + e.starred(e.name)
		if i > 0 {
			longer = line + ", " + e.starred(e.name)
		}
		if uniseg.StringWidth(longer) > columns && i > 0 {
			break
		}
		line = longer
	}
	return line
}

// starred adds a star to text about a held-out emoji.
func (e entry) starred(text string) string {
	if e.heldOut {
		return text + "*"
	}
	return text
}

func quoted(words []string) string {
	var all []string
	for _, w := range words {
		all = append(all, fmt.Sprintf("%q", w))
	}
	return strings.Join(all, ", ")
}

// reply answers queries one by one and returns the answers. It prints a puzzle and
// leaves it out.
func (f *finder) reply(ctx context.Context, queries []string, out io.Writer) ([]answer, error) {
	fmt.Fprintln(out)
	var answers []answer
	for _, query := range queries {
		a, err := f.ask(ctx, query)
		var p puzzle
		switch {
		case errors.As(err, &p):
			fmt.Fprintf(out, "  %v\n", p)
		case err != nil:
			return nil, err
		default:
			a.print(out)
			answers = append(answers, a)
		}
	}
	return answers, nil
}

// converse answers typed queries until an empty line, the end of the input or an
// interrupt.
func (f *finder) converse(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := make(chan string)
	go func() { // ends with the program at the latest: a read from a terminal cannot be cancelled
		defer close(lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			select {
			case lines <- s.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		fmt.Fprint(out, "\n> ")
		select {
		case <-ctx.Done():
			fmt.Fprintln(out)
			return nil
		case line, more := <-lines:
			if !more {
				fmt.Fprintln(out)
			}
			if strings.TrimSpace(line) == "" {
				return nil
			}
			if _, err := f.reply(ctx, []string{line}, out); err != nil {
				return err
			}
		}
	}
}

// encode makes vectors of words, as an encoder that `fddhdb encoder` stores. It reads one text
// a line, and writes one vector a line, as the numbers that are not 0. It needs the
// database only for the learned names. Other processes, such as the one that has started it, may have the
// database open meanwhile.
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
			answer = map[string]string{
				"error": fmt.Sprintf("nothing in %q is like a word of the names learned from", text)}
		}
		if err := errors.Join(printed.Encode(answer), w.Flush()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// readVocabulary returns the vocabulary of the names that training saw.
func readVocabulary(ctx context.Context, dir string) (*vocabulary, error) {
	d, err := attach.Open(ctx, dir, attach.Options{DB: &db.Options{ReadOnly: true}})
	if err != nil {
		return nil, err
	}
	f := &finder{}
	emoji, err := d.Collection(ctx, "emoji")
	if err == nil {
		err = f.read(emoji.Items(ctx, ""))
	}
	err = errors.Join(err, d.Close())
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
