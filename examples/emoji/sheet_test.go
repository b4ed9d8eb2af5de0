package main

import (
	"bytes"
	"image/png"
	"strings"
	"testing"
)

func TestWriteSheet(t *testing.T) {
	d := dataForTest(t)
	hit := func(i int, v verdict) sheetHit {
		return sheetHit{name: d.items[i].name, picture: d.pictures[i], verdict: v}
	}
	rows := []sheetRow{
		{query: "some words", hits: []sheetHit{hit(0, unjudged), hit(1, right), hit(2, wrong)}},
		{query: d.items[3].name, picture: d.pictures[3],
			hits: []sheetHit{{name: "a name alone", verdict: right}}},
		{query: "nothing found"},
	}
	var b bytes.Buffer
	if err := writeSheet(&b, "A title", rows); err != nil {
		t.Fatal(err)
	}
	sheet, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	size := sheet.Bounds().Size()
	if size.X < queryWidth+3*hitWidth || size.Y < len(rows)*rowHeight {
		t.Errorf("the sheet is %v", size)
	}
	seen := make(map[[3]uint32]bool)
	for y := range size.Y {
		for x := range size.X {
			r, g, b, _ := sheet.At(x, y).RGBA()
			seen[[3]uint32{r >> 8, g >> 8, b >> 8}] = true
		}
	}
	for name, c := range map[string][3]uint8{
		"right": {rightInk.R, rightInk.G, rightInk.B},
		"wrong": {wrongInk.R, wrongInk.G, wrongInk.B},
		"paper": {wordPaper.R, wordPaper.G, wordPaper.B},
	} {
		if !seen[[3]uint32{uint32(c[0]), uint32(c[1]), uint32(c[2])}] {
			t.Errorf("nothing is drawn in the colour of %s", name)
		}
	}
}

func TestWrap(t *testing.T) {
	p, err := newPen()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "cat", "smiling cat with heart-eyes and a very long name indeed",
		strings.Repeat("x", 99), "a " + strings.Repeat("x", 99) + " b"} {
		lines := p.small.wrap(text, 90, 2)
		if len(lines) > 2 {
			t.Errorf("%q: %d lines", text, len(lines))
		}
		whole := true
		for _, l := range lines {
			whole = whole && !strings.HasSuffix(l, "…")
			if p.small.width(l) > 90 {
				t.Errorf("%q: line %q is %d pixels wide", text, l, p.small.width(l))
			}
		}
		if whole && strings.Join(lines, " ") != text {
			t.Errorf("%q became %q", text, lines)
		}
	}
}
