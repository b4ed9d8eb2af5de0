package main

import (
	"context"
	"fmt"
	"io"
	"slices"
)

var (
	demoWords    = []string{"cat face", "red heart", "pizza", "moon", "bug", "running", "Kenya"}
	demoFailures = []string{"kitten", "sushi"}
)

// demoPictures is the number of held-out pictures in the demonstration. They stand at
// equal distances in the order of their characters, and are not chosen for their
// answers.
const demoPictures = 8

// demonstrate answers a few queries and says where the finder fails.
func (f *finder) demonstrate(ctx context.Context, out io.Writer) error {
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
	for _, part := range []struct {
		title   string
		queries []string
	}{
		{"Words find pictures (* training never saw that emoji):", demoWords},
		{"Pictures find words. The pictures are every " + ordinal(len(held)/demoPictures) +
			" of those that training never saw:", pictures},
		{"Where it fails: a word that no name learned from has is nothing but its letters:", demoFailures},
	} {
		fmt.Fprintf(out, "\n%s\n", part.title)
		if _, err := f.reply(ctx, part.queries, out); err != nil {
			return err
		}
	}
	return nil
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
