package sheet

import (
	"context"
	"errors"
	"fmt"
	"image"
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

// maxSheetCards bounds the cards of a sheet, and so the memory of a .png: about 150 kB
// a card. A .html takes the memory of one card.
const maxSheetCards = 1000

// A sheetCard is an item on a contact sheet.
type sheetCard struct {
	isQuery     bool // the item is the query, and no hit
	key, labels string
	distance    string      // distance and score; "": there is none
	similarity  string      // in words; "": there is none
	picture     image.Image // nil: there is none
	text        string      // shown if there is no picture
}

// A sheetForm is a contact sheet in one format. It gets one card after the other.
type sheetForm interface {
	size() int // side of the box of pictures, in pixels

	// begin begins the row of a query. Calls of card follow: one for the query if it is
	// an item, and one for each of so many hits. similar says that some have a similarity.
	begin(title string, isItem bool, hits int, similar bool) error
	card(c *sheetCard) error

	end() error
}

// A Sheet makes a contact sheet of answers to queries.
type Sheet struct {
	c        *db.Collection
	files    outfile.Set
	form     sheetForm
	pictures *picture.Folder // nil: none
	cards    int             // number of cards so far
	unshown  int             // number of pictures that could not be shown
	problem  string          // error of the first of them
}

// CheckPath returns an error unless a path ends in .png or .html.
func CheckPath(path string) error {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".png", ".html":
		return nil
	}
	return exit.Usagef("--sheet %s: a .png or .html file is made", path)
}

// New begins a sheet of items of a collection, in the format of the extension of path.
// The caller closes it. folder has files of pictures; "" for none. hits is the
// approximate number of hits of a row.
func New(c *db.Collection, path, folder, title string, hits int) (*Sheet, error) {
	pictures, err := picture.OpenFolder(folder, isPicture)
	if err != nil {
		return nil, err
	}
	s := &Sheet{c: c, pictures: pictures}
	out, err := s.files.Create(path)
	if err != nil {
		s.Close()
		return nil, err
	}
	if strings.EqualFold(filepath.Ext(path), ".png") {
		s.form = newSheetPNG(out.Writer, hits)
	} else {
		s.form = newSheetHTML(out.Writer, term.Plain(title))
	}
	return s, nil
}

// Close removes a sheet that was not committed.
func (s *Sheet) Close() {
	s.files.Discard()
	s.pictures.Close()
}

// Commit gives the sheet its name. It returns a remark about pictures that are not
// shown, "" for none.
func (s *Sheet) Commit() (remark string, err error) {
	if err := s.form.end(); err != nil {
		return "", err
	}
	if s.unshown > 0 {
		remark = fmt.Sprintf("%s could not be shown: %s", term.Plural(s.unshown, "picture", "pictures"), s.problem)
	}
	return remark, s.files.Commit()
}

// Include is what a hit has to have of its item to be on a sheet.
const Include = db.IncludeLabels | db.IncludeFields | db.IncludePayload

// Add adds a query and its hits, with their items, to the sheet. key is the key of the query if
// it is an item, else "".
func (s *Sheet) Add(ctx context.Context, title, key string, hits []db.Hit) error {
	if s.cards += len(hits) + 1; s.cards > maxSheetCards {
		return exit.Failedf("--sheet: more than %s queries and hits: -k shows fewer, --row one query", term.Thousands(maxSheetCards))
	}
	similar := slices.ContainsFunc(hits, func(h db.Hit) bool { return !math.IsNaN(float64(h.Similarity)) })
	if err := s.form.begin(title, key != "", len(hits), similar); err != nil {
		return err
	}
	if key != "" {
		card, err := s.queryCard(ctx, key)
		if err == nil {
			err = s.form.card(card)
		}
		if err != nil {
			return err
		}
	}
	for _, h := range hits {
		card, err := s.card(ctx, h.Item)
		if err != nil {
			return err
		}
		if h.Distance >= 0 { // codes were compared
			card.distance = term.Plural(h.Distance, "bit", "bits")
		}
		if !math.IsNaN(h.Score) {
			card.distance += fmt.Sprintf(", score %.3f", h.Score)
		}
		if !math.IsNaN(float64(h.Similarity)) {
			card.similarity = "similarity " + term.Similarity(h.Similarity)
		}
		if err := s.form.card(card); err != nil {
			return err
		}
	}
	return nil
}

// queryCard reads the item that is the query, which need not be a hit, and makes its card.
func (s *Sheet) queryCard(ctx context.Context, key string) (*sheetCard, error) {
	it, err := s.c.Get(ctx, key)
	if errors.Is(err, db.ErrNotFound) {
		return &sheetCard{isQuery: true, key: term.Plain(key), text: "deleted meanwhile"}, nil
	}
	if err != nil {
		return nil, err
	}
	card, err := s.card(ctx, it)
	if err == nil {
		card.isQuery = true
	}
	return card, err
}

// card makes the card of an item.
func (s *Sheet) card(ctx context.Context, it *db.Item) (*sheetCard, error) {
	card := &sheetCard{key: term.Plain(it.Key)}
	card.labels = term.Plain(strings.Join(it.Labels, ", "))
	data, err := s.picture(it)
	if err == nil && data != nil {
		card.picture, err = thumbnail(ctx, data, s.form.size())
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		card.text = "picture not shown: " + err.Error()
		if s.unshown++; s.unshown == 1 {
			s.problem = fmt.Sprintf("that of %s, %v", card.key, err)
		}
	case card.picture == nil:
		card.text = itemText(it)
	}
	return card, nil
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
		for line := range strings.Lines(string(it.Payload[:min(len(it.Payload), 4*most)])) {
			lines = append(lines, term.Plain(strings.TrimSpace(strings.ToValidUTF8(line, ""))))
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
