package sheet

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/outfile"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/picture"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

//go:embed sheet.css
var style string

// maxCards bounds the cards of a sheet.
const maxCards = 1000

// Include is what a hit has to have of its item to be on a sheet.
const Include = db.IncludeLabels | db.IncludeFields | db.IncludePayload

// A Sheet makes a contact sheet of answers to queries.
type Sheet struct {
	c        *db.Collection
	files    outfile.Set
	out      *outfile.File
	pictures *picture.Folder // nil: none
	queries  int
	cards    int    // number of cards so far
	unshown  int    // number of pictures that could not be shown
	problem  string // error of the first of them
}

// CheckPath returns an error unless a path ends in .html.
func CheckPath(path string) error {
	if !strings.EqualFold(filepath.Ext(path), ".html") {
		return exit.Usagef("--sheet %s: a .html file is made", path)
	}
	return nil
}

// New begins a sheet of items of a collection. The caller closes it. folder has files of pictures; "" for
// none.
func New(c *db.Collection, path, folder, title string) (*Sheet, error) {
	pictures, err := picture.OpenFolder(folder, isPicture)
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

// Commit gives the sheet its name. It returns a remark about pictures that are not
// shown, "" for none.
func (s *Sheet) Commit() (remark string, err error) {
	if err := s.printf("</main>\n</body>\n</html>\n"); err != nil {
		return "", err
	}
	if s.unshown > 0 {
		remark = fmt.Sprintf("%s could not be shown: %s", term.Plural(s.unshown, "picture", "pictures"),
			s.problem)
	}
	return remark, s.files.Commit()
}

// Add adds a query and its hits, with their items, to the sheet. key is the key of the query if
// it is an item, else "".
func (s *Sheet) Add(ctx context.Context, title, key string, hits []db.Hit) error {
	if s.cards += len(hits) + 1; s.cards > maxCards {
		return exit.Failedf("--sheet: more than %s queries and hits: -k shows fewer, --row one query",
			term.Thousands(maxCards))
	}
	s.queries++
	s.printf("<section aria-labelledby=\"q%d\">\n<h2 id=\"q%[1]d\">%s</h2>\n", s.queries, title)
	if len(hits) == 0 {
		s.printf("<p>no items</p>\n")
	}
	if key == "" && len(hits) == 0 { // no list of nothing
		return s.printf("</section>\n")
	}
	s.printf("<ol>\n")
	if key != "" {
		it, err := s.c.Get(ctx, key) // it need not be a hit
		if errors.Is(err, db.ErrNotFound) {
			it, err = &db.Item{Key: key, Payload: []byte("deleted meanwhile")}, nil
		}
		if err == nil {
			err = s.card(ctx, it, "query", "the query")
		}
		if err != nil {
			return err
		}
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
		if err := s.card(ctx, h.Item, "", distance, similarity); err != nil {
			return err
		}
	}
	return s.printf("</ol>\n</section>\n")
}

// card adds the card of an item, with lines about it.
func (s *Sheet) card(ctx context.Context, it *db.Item, class string, lines ...string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.printf(`<li><figure class="%s"><div class="box">`, class)
	data, err := s.picture(it)
	text, shown := itemText(it), (*thumbnail)(nil)
	if err == nil && data != nil {
		shown, err = newThumbnail(data)
	}
	if err != nil {
		text = "picture not shown: " + err.Error()
		if s.unshown++; s.unshown == 1 {
			s.problem = fmt.Sprintf("that of %s, %v", term.Plain(it.Key), err)
		}
	}
	if shown == nil {
		s.printf(`<p dir="auto">%s</p>`, text)
	} else {
		source := "data:" + shown.kind + ";base64," + base64.StdEncoding.EncodeToString(shown.data)
		s.printf(`<img src="%s" width="%d" height="%d" style="rotate: %s" alt="picture of %s">`,
			source, shown.width, shown.height, shown.turn, term.Plain(it.Key))
	}
	s.printf(`</div><figcaption><span><bdi>%s</bdi></span>`, term.Plain(it.Key))
	for _, line := range lines {
		if line != "" {
			s.printf(`<span>%s</span>`, line)
		}
	}
	if len(it.Labels) > 0 {
		s.printf(`<span class="soft"><bdi>%s</bdi></span>`, term.Plain(strings.Join(it.Labels, ", ")))
	}
	return s.printf("</figcaption></figure></li>\n")
}

// picture returns the bytes of an item's picture, nil if it has none.
func (s *Sheet) picture(it *db.Item) ([]byte, error) {
	if isPicture(it.Payload) {
		return it.Payload, nil
	}
	file, err := s.pictures.Find(it)
	if file == nil || err != nil {
		return nil, err
	}
	return file.Bytes()
}

// itemText returns the text of a card without a picture.
func itemText(it *db.Item) string {
	const most = 300 // characters
	var lines []string
	if len(it.Payload) > 0 && utf8.Valid(it.Payload) {
		for line := range bytes.Lines(it.Payload[:min(len(it.Payload), 4*most)]) {
			lines = append(lines, term.Plain(strings.ToValidUTF8(string(bytes.TrimSpace(line)), "")))
		}
	} else {
		for _, name := range slices.Sorted(maps.Keys(it.Fields)) {
			lines = append(lines, term.Plain(name+": "+term.Value(it.Fields[name])))
		}
	}
	text := []rune(strings.Join(lines, "\n"))
	if len(text) > most {
		return string(text[:most-1]) + "…"
	}
	return string(text)
}
