package hashes

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/image/draw"

	"github.com/fddhdb/fddhdb/codec/perceptual"
	"github.com/fddhdb/fddhdb/experiments/common"
)

// advised are the radii of the table in package perceptual.
var advised = map[string]int{"pdq": 31, "phash": 7, "dhash": 4}

// A change makes a copy of a photograph.
type change struct {
	name string
	copy func(m *image.RGBA) (image.Image, error)
}

var changes = []change{{"half", half}, {"cropped", cropped}, {"recoded", recoded}, {"tinted", tinted}}

// Command returns the experiment.
func Command() *cobra.Command {
	precision := .99
	cmd := common.New("hashes FOLDER", "Measure how well hashes of pictures find copies",
		"The folder has JPEG files, also in the folders below it.", cobra.ExactArgs(1),
		func(cmd *cobra.Command, args []string) error {
			return measure(args[0], precision, cmd.OutOrStdout())
		})
	common.FlagsOf(cmd).Float64Var(&precision, "precision", precision, "the least precision of a radius")
	return cmd
}

// measure prints a table.
func measure(folder string, precision float64, stdout io.Writer) error {
	photos, err := read(folder)
	if err != nil {
		return err
	}
	common.Head(stdout, 2, "hash", "copies", "radius", "precision", "recall", "advised", "precision",
		"recall")
	for _, hash := range perceptual.Hashes {
		if hash.OfPicture == nil {
			continue
		}
		codes := make([][]byte, len(photos))
		for i, m := range photos {
			codes[i], _ = hash.OfPicture(m)
		}
		for _, change := range changes {
			c := newCounts(hash.Bits)
			for i, m := range photos {
				changed, err := change.copy(m)
				if err != nil {
					return err
				}
				code, _ := hash.OfPicture(changed)
				c.add(code, codes, i)
			}
			row := []string{hash.Name, change.name}
			for _, radius := range []int{c.radius(precision), advised[hash.Name]} {
				p, r := c.within(radius)
				row = append(row, fmt.Sprint(radius), fmt.Sprintf("%.4f", p), fmt.Sprintf("%.4f", r))
			}
			common.Row(stdout, row...)
		}
	}
	return nil
}

// read returns the photographs of a folder.
func read(folder string) (photos []*image.RGBA, err error) {
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() ||
			!slices.Contains([]string{".jpg", ".jpeg"}, strings.ToLower(filepath.Ext(path))) {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		m, err := jpeg.Decode(f)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		photo := image.NewRGBA(image.Rect(0, 0, m.Bounds().Dx(), m.Bounds().Dy()))
		draw.Draw(photo, photo.Rect, m, m.Bounds().Min, draw.Src)
		photos = append(photos, photo)
		return nil
	})
	if err == nil && len(photos) < 2 {
		err = errors.New("at least two photographs are expected")
	}
	return photos, err
}

// counts has, by distance, how many originals and how many other photographs are so far from copies.
type counts struct{ originals, others []int }

func newCounts(bits int) *counts { return &counts{make([]int, bits+1), make([]int, bits+1)} }

// add adds the copy of a photograph.
func (c *counts) add(code []byte, codes [][]byte, of int) {
	for i, other := range codes {
		d := 0
		for j := range code {
			d += bits.OnesCount8(code[j] ^ other[j])
		}
		if i == of {
			c.originals[d]++
		} else {
			c.others[d]++
		}
	}
}

// within returns precision and recall within a radius. The precision of copies that find nothing is 1.
func (c *counts) within(radius int) (precision, recall float64) {
	sum := func(of []int) (n float64) {
		for _, x := range of {
			n += float64(x)
		}
		return n
	}
	hits, wrong := sum(c.originals[:radius+1]), sum(c.others[:radius+1])
	if hits+wrong == 0 {
		return 1, 0
	}
	return hits / (hits + wrong), hits / sum(c.originals)
}

// radius returns the largest radius with a precision, 0 if there is none.
func (c *counts) radius(least float64) int {
	for r := len(c.originals) - 1; r > 0; r-- {
		if p, _ := c.within(r); p >= least {
			return r
		}
	}
	return 0
}

func half(m *image.RGBA) (image.Image, error) {
	out := image.NewRGBA(image.Rect(0, 0, max(1, m.Rect.Dx()/2), max(1, m.Rect.Dy()/2)))
	draw.CatmullRom.Scale(out, out.Rect, m, m.Rect, draw.Src, nil)
	return out, nil
}

func cropped(m *image.RGBA) (image.Image, error) {
	x, y := m.Rect.Dx()/40, m.Rect.Dy()/40
	return m.SubImage(image.Rect(x, y, m.Rect.Dx()-x, m.Rect.Dy()-y)), nil
}

func recoded(m *image.RGBA) (image.Image, error) {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 30}); err != nil {
		return nil, err
	}
	return jpeg.Decode(&b)
}

func tinted(m *image.RGBA) (image.Image, error) {
	out := image.NewRGBA(m.Rect)
	for y := range m.Rect.Dy() {
		for x := range m.Rect.Dx() {
			c := m.RGBAAt(x, y)
			c.R, c.B = uint8(min(255, 1.15*float64(c.R))), uint8(.8*float64(c.B))
			out.SetRGBA(x, y, c)
		}
	}
	return out, nil
}
