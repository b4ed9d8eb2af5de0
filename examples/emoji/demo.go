package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"slices"

	"golang.org/x/image/draw"
)

var (
	demoWords = []string{"cat face", "red heart", "pizza", "moon", "bug", "running", "french flag",
		"Kenya"}
	demoFailures = []string{"kitten", "sushi", "portuguese flag"}
)

// demoPictures is the number of held-out pictures in the demonstration. They stand at
// equal distances in the order of their characters, and are not chosen for their
// answers.
const demoPictures = 8

// demonstrate answers a few queries and says where the finder fails.
func (f *finder) demonstrate(ctx context.Context, out io.Writer) ([]answer, error) {
	var held []string
	for _, e := range f.entries {
		if e.heldOut {
			held = append(held, e.key)
		}
	}
	slices.Sort(held)
	var pictures []string
	for i := range demoPictures {
		pictures = append(pictures, held[(2*i+1)*len(held)/(2*demoPictures)])
	}
	var all []answer
	for _, part := range []struct {
		title   string
		queries []string
	}{
		{"Words find pictures (* training never saw that emoji):", demoWords},
		{"Pictures find words. The pictures are every " + ordinal(len(held)/demoPictures) +
			" of those that training never saw:", pictures},
		{"Where it fails: a word that no name learned from has is nothing but its letters; and a language\n" +
			"is that of the country where most people speak it:", demoFailures},
	} {
		fmt.Fprintf(out, "\n%s\n", part.title)
		answers, err := f.reply(ctx, part.queries, out)
		if err != nil {
			return nil, err
		}
		all = append(all, answers...)
	}
	return all, nil
}

func ordinal(n int) string {
	suffix := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n, suffix)
}

// drawSheet draws the answers into a PNG file. The pictures come from the database.
func (f *finder) drawSheet(ctx context.Context, path string, answers []answer) error {
	var rows []sheetRow
	for _, a := range answers {
		row := sheetRow{query: a.query}
		if a.picture != nil {
			row.query = a.picture.starred(a.picture.name)
			var err error
			if row.picture, err = f.picture(ctx, *a.picture); err != nil {
				return err
			}
		}
		for _, e := range a.hits {
			hit := sheetHit{name: e.starred(e.name)}
			if a.picture != nil {
				hit.verdict = wrong
				if e.group == a.picture.group {
					hit.verdict = right
				}
			} else {
				var err error
				if hit.picture, err = f.picture(ctx, e); err != nil {
					return err
				}
			}
			row.hits = append(row.hits, hit)
		}
		rows = append(rows, row)
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing the contact sheet: %w", err)
	}
	title := fmt.Sprintf("Emoji by words and words by emoji: codes of %d bits. * training never saw it; green: the right group", maxLabels)
	return cmp.Or(writeSheet(file, title, rows), file.Close())
}

// picture reads the picture of an emoji from the database.
func (f *finder) picture(ctx context.Context, e entry) (*image.RGBA, error) {
	item, err := f.emoji.Get(ctx, e.key)
	if err != nil {
		return nil, err
	}
	src, err := png.Decode(bytes.NewReader(item.Payload))
	if err != nil {
		return nil, fmt.Errorf("stored picture of %s: %w", e.key, err)
	}
	dst := image.NewRGBA(src.Bounds())
	draw.Draw(dst, dst.Bounds(), src, src.Bounds().Min, draw.Src)
	return dst, nil
}
