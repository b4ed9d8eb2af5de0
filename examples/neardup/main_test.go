package main

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

func Example() {
	if err := command(context.Background(), nil, os.Stdout, os.Stderr); err != nil {
		panic(err)
	}
	// Output:
	// picture 60 cropped looks like picture 60: distance 4 of 64 bits
	// picture 120 darker looks like picture 120: distance 0 of 64 bits
	// picture 180 smaller looks like picture 180: distance 1 of 64 bits
	// picture 240 saved badly looks like picture 240: distance 3 of 64 bits
}

// Copies of files are found by what they show, a kept database is gone on with, and what
// is no picture is named.
func TestFolder(t *testing.T) {
	folder, kept := t.TempDir(), filepath.Join(t.TempDir(), "kept")
	write := func(name string, m image.Image) {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if filepath.Ext(name) == ".png" {
			err = png.Encode(f, m)
		} else {
			err = jpeg.Encode(f, m, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("a.png", paint(1))
	write("b.png", paint(2))
	write("c/copy of a.JPG", large{paint(1)})
	write("c/dark b.jpeg", darken(paint(2)))
	for name, text := range map[string]string{"notes.txt": "no picture", "broken.jpg": "nor this"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	run := func() (stdout, stderr string) {
		var out, errs strings.Builder
		if err := command(t.Context(), []string{"-db", kept, folder}, &out, &errs); err != nil {
			t.Fatal(err)
		}
		return out.String(), errs.String()
	}
	out, errs := run()
	for _, says := range []string{"c/copy of a.JPG looks like a.png: ", "c/dark b.jpeg looks like b.png: ",
		"New pictures: 4. Like another: 2.", "fddhdb explore"} {
		if !strings.Contains(out, says) {
			t.Errorf("%q is not in\n%s", says, out)
		}
	}
	if !strings.Contains(errs, "broken.jpg is left out: ") || strings.Contains(errs, "notes.txt") {
		t.Errorf("on stderr: %s", errs)
	}
	write("d.png", paint(1))
	if out, _ = run(); !strings.HasPrefix(out, "d.png looks like a.png: distance 0 ") ||
		!strings.Contains(out, "\nNew pictures: 1. ") {
		t.Errorf("the second time:\n%s", out)
	}
	d, err := db.Open(kept, &db.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	c, err := d.Collection("main")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := c.Count(t.Context(), ""); err != nil || n != 5 {
		t.Errorf("%d items are stored: %v", n, err)
	}
}

// A large picture is a picture of five times the size on each side.
type large struct{ of *image.Gray }

func (l large) ColorModel() color.Model { return color.GrayModel }
func (l large) Bounds() image.Rectangle { return image.Rect(0, 0, 5*l.of.Rect.Dx(), 5*l.of.Rect.Dy()) }
func (l large) At(x, y int) color.Color { return l.of.GrayAt(x/5, y/5) }

// No bytes of a file make hash panic: they are refused, or are a picture.
func FuzzDecode(f *testing.F) {
	for _, encode := range []func(io.Writer, image.Image) error{
		png.Encode,
		func(w io.Writer, m image.Image) error { return jpeg.Encode(w, m, nil) },
		func(w io.Writer, m image.Image) error { return gif.Encode(w, m, nil) },
	} {
		for _, m := range []image.Image{paint(1), image.NewGray(image.Rect(0, 0, 1, 1))} {
			var file bytes.Buffer
			if err := encode(&file, m); err != nil {
				f.Fatal(err)
			}
			f.Add(file.Bytes())
			f.Add(file.Bytes()[:file.Len()/2])
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if size, _, err := image.DecodeConfig(bytes.NewReader(file)); err == nil &&
			size.Width*size.Height > 1_000_000 {
			return // that takes long
		}
		if picture, err := decode(bytes.NewReader(file)); err == nil && len(hash(picture)) != bits/8 {
			t.Error("a hash of another length")
		}
	})
}

// What is given wrongly is named, and no database is made.
func TestErrors(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made")
	for says, args := range map[string][]string{
		"one folder":     {"a", "b"},
		"of pictures is": {"-db", made},
		"not defined":    {"-other"},
		"no-such-folder": {"-db", made, filepath.Join(t.TempDir(), "no-such-folder")},
	} {
		if err := command(t.Context(), args, io.Discard, io.Discard); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", args, err)
		}
	}
	if _, err := os.Stat(made); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a database is there: %v", err)
	}
}
