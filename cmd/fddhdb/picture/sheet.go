package picture

import (
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"maps"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/outfile"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
)

//go:embed sheet.css
var style string

// Bounds of a sheet, which browsers hold in memory.
const (
	maxCards = 1000
	maxBytes = 64 << 20 // of pictures
)

// Include is what a hit has to have of its item to be on a sheet.
const Include = db.IncludeLabels | db.IncludeFields | db.IncludePayload

// A Sheet makes a contact sheet of answers to queries. Pictures are in it as they are stored.
type Sheet struct {
	c        api.Collection
	files    outfile.Set
	out      *outfile.File
	pictures *Folder // nil: none
	cards    int     // number of cards so far
	bytes    int     // of pictures so far
}

// NewSheet begins a sheet of items of a collection. The caller closes it. folder has files of pictures; ""
// for none.
func NewSheet(c api.Collection, path, folder, title string) (*Sheet, error) {
	if !strings.EqualFold(filepath.Ext(path), ".html") {
		return nil, exit.Usagef("--sheet %s: a .html file is made", path)
	}
	pictures, err := OpenFolder(folder, func(head []byte) bool { return kind(head) != "" })
	if err != nil {
		return nil, err
	}
	s := &Sheet{c: c, pictures: pictures}
	if s.out, err = s.files.Create(path); err != nil {
		s.Close()
		return nil, err
	}
	const policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
	s.printf("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
	s.printf("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
	s.printf("<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">\n<title>fddhdb search: %s</title>\n<style>\n", policy, term.Plain(title))
	s.out.WriteString(style)
	return s, s.printf("</style>\n</head>\n<body>\n<main>\n<h1>%s</h1>\n", term.Plain(title))
}

// printf writes markup: a format that is constant, and strings, which are text or values of attributes and
// are escaped. Later calls return the first error again, as the writer keeps it.
func (s *Sheet) printf(format string, args ...any) error {
	for i, a := range args {
		if text, ok := a.(string); ok {
			args[i] = html.EscapeString(text)
		}
	}
	_, err := fmt.Fprintf(s.out, format, args...)
	return err
}

// Close removes a sheet that was not committed.
func (s *Sheet) Close() {
	s.files.Discard()
	s.pictures.Close()
}

// Commit gives the sheet its name.
func (s *Sheet) Commit() error {
	if err := s.printf("</main>\n</body>\n</html>\n"); err != nil {
		return err
	}
	return s.files.Commit()
}

// Add adds a query and its hits, with their items, to the sheet. key is the key of the query if
// it is an item, else "".
func (s *Sheet) Add(ctx context.Context, title, key string, hits []db.Hit) error {
	if s.cards += len(hits) + 1; s.cards > maxCards {
		return exit.Failedf("--sheet: more than %s queries and hits: -k shows fewer, --row one query",
			term.Thousands(maxCards))
	}
	s.printf("<section>\n<h2>%s</h2>\n", title)
	if len(hits) == 0 {
		s.printf("<p>no items</p>\n")
	}
	if key != "" {
		it, err := s.c.Get(ctx, key) // it need not be a hit
		if errors.Is(err, db.ErrNotFound) {
			it, err = &db.Item{Key: key, Payload: []byte("deleted meanwhile")}, nil
		}
		if err != nil {
			return err
		}
		s.card(it, "query", "the query")
	}
	for _, h := range hits {
		var distance, similarity string
		if h.Distance >= 0 { // codes were compared
			distance = term.Plural(h.Distance, "bit", "bits")
		}
		if !math.IsNaN(h.Score) {
			distance += fmt.Sprintf(", score %.3f", h.Score)
		}
		if !math.IsNaN(float64(h.Similarity)) {
			similarity = "similarity " + term.Similarity(h.Similarity)
		}
		s.card(h.Item, "", distance, similarity)
	}
	s.printf("</section>\n")
	return ctx.Err()
}

// card adds the card of an item, with lines about it.
func (s *Sheet) card(it *db.Item, class string, lines ...string) {
	s.printf(`<figure class="%s"><div class="box">`, class)
	data, err := s.picture(it)
	if s.bytes += len(data); err == nil && s.bytes > maxBytes {
		err = fmt.Errorf("the sheet has %s of pictures", term.Size(maxBytes))
	}
	switch {
	case err != nil:
		s.printf(`<p>picture not shown: %s</p>`, err.Error())
	case data == nil:
		s.printf(`<p dir="auto">%s</p>`, itemText(it))
	default:
		s.printf(`<img src="data:%s;base64,%s" alt="picture of %s">`, kind(data),
			base64.StdEncoding.EncodeToString(data), term.Plain(it.Key))
	}
	s.printf(`</div><figcaption><span><bdi>%s</bdi></span>`, term.Plain(it.Key))
	for _, line := range append(lines, term.Plain(strings.Join(it.Labels, ", "))) {
		if line != "" {
			s.printf(`<span><bdi>%s</bdi></span>`, line)
		}
	}
	s.printf("</figcaption></figure>\n")
}

// kind returns the type of data that begins as a picture, else "".
func kind(data []byte) string {
	t := http.DetectContentType(data)
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif"}, t) {
		return ""
	}
	return t
}

// picture returns the bytes of an item's picture, nil if it has none.
func (s *Sheet) picture(it *db.Item) ([]byte, error) {
	if kind(it.Payload) != "" {
		return it.Payload, nil
	}
	if name := s.pictures.Find(it); name != "" {
		return s.pictures.Read(name)
	}
	return nil, nil
}

// itemText returns the text of a card without a picture.
func itemText(it *db.Item) string {
	const most = 300 // characters
	text := string(it.Payload[:min(len(it.Payload), 4*most)])
	if text == "" || !utf8.Valid(it.Payload) {
		text = ""
		for _, name := range slices.Sorted(maps.Keys(it.Fields)) {
			text += name + ": " + term.Value(it.Fields[name]) + "\n"
		}
	}
	var lines []string
	for line := range strings.Lines(strings.ToValidUTF8(text, "")) {
		lines = append(lines, term.Plain(strings.TrimSpace(line)))
	}
	shown := []rune(strings.Join(lines, "\n"))
	if len(shown) > most {
		return string(shown[:most-1]) + "…"
	}
	return string(shown)
}
