package perceptual

import (
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const references = "../../../shared/data/pdq"

// readReferences returns the rows of a file of references, without its header.
func readReferences(t *testing.T, name string) [][]string {
	t.Helper()
	f, err := os.Open(filepath.Join(references, name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no pictures with the hashes of the reference of PDQ: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatal(len(rows), err)
	}
	return rows[1:]
}

func readPicture(t *testing.T, file string) image.Image {
	t.Helper()
	f, err := os.Open(filepath.Join(references, file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, _, err := image.Decode(f)
	if err != nil {
		t.Fatal(file, err)
	}
	return m
}

// distance returns the number of bits in which two codes differ.
func distance(a, b []byte) (n int) {
	for i := range a {
		n += bits.OnesCount8(a[i] ^ b[i])
	}
	return n
}

// Pictures have the hash that the reference gives them. Decoders of JPEG differ by a level here and there,
// which flips a few bits; more where there is hardly anything to see but these levels.
func TestPDQIsThatOfTheReference(t *testing.T) {
	for _, row := range readReferences(t, "expected.csv") {
		file := row[0]
		code, quality := PDQ(readPicture(t, file))
		want, err := hex.DecodeString(row[1])
		if err != nil {
			t.Fatal(err)
		}
		wantQuality, err := strconv.Atoi(row[2])
		if err != nil {
			t.Fatal(err)
		}
		most, off := 0, 0
		if strings.HasSuffix(file, ".jpg") {
			if most, off = 10, 1; wantQuality < 10 {
				most = 24
			}
		}
		d := distance(code, want)
		if d > most || max(quality-wantQuality, wantQuality-quality) > off {
			t.Errorf("%s: %x, quality %d; the reference has %s, %d: %d bits differ", file, code, quality, row[1],
				wantQuality, d)
		}
	}
}

func TestTurnsAreThoseOfTheReference(t *testing.T) {
	for _, row := range readReferences(t, "dihedral.txt") {
		file := row[len(row)-1]
		codes, _ := PDQTurns(readPicture(t, file))
		for i, code := range codes {
			if got := hex.EncodeToString(code); got != row[i] {
				t.Errorf("%s, turn %d: %s, the reference has %s", file, i, got, row[i])
			}
		}
	}
}

// A picture that is turned has the hash that its original promises for that turn.
func TestTurnsOfAPicture(t *testing.T) {
	m := scene(1, 300, 300)
	codes, _ := PDQTurns(m)
	last := 299
	for i, from := range []func(x, y int) (int, int){
		func(x, y int) (int, int) { return x, y },
		func(x, y int) (int, int) { return last - y, x },
		func(x, y int) (int, int) { return last - x, last - y },
		func(x, y int) (int, int) { return y, last - x },
		func(x, y int) (int, int) { return x, last - y },
		func(x, y int) (int, int) { return last - x, y },
		func(x, y int) (int, int) { return y, x },
		func(x, y int) (int, int) { return last - y, last - x },
	} {
		turned := image.NewNRGBA(m.Rect)
		for y := range 300 {
			for x := range 300 {
				fx, fy := from(x, y)
				turned.SetNRGBA(x, y, m.NRGBAAt(fx, fy))
			}
		}
		code, _ := PDQ(turned)
		if d := distance(code, codes[i]); d > 16 {
			t.Errorf("turn %d: its hash differs in %d bits", i, d)
		}
		for j, other := range codes {
			if d := distance(code, other); j != i && d < 90 {
				t.Errorf("turn %d is near turn %d: %d bits", i, j, d)
			}
		}
	}
}

func TestPDQOfPicturesWithLittleToSee(t *testing.T) {
	for _, size := range []image.Rectangle{{}, image.Rect(0, 0, 1, 1), image.Rect(3, 3, 7, 900),
		image.Rect(0, 0, 600, 4), image.Rect(-9, -9, 91, 91), image.Rect(0, 0, 5000, 5)} {
		m := image.NewGray(size)
		code, quality := PDQ(m)
		if quality != 0 || len(code) != 32 {
			t.Errorf("%v: quality %d, %d bytes", size, quality, len(code))
		}
		if _, quality := PDQTurns(m); quality != 0 {
			t.Errorf("turns of %v: quality %d", size, quality)
		}
		if n := len(PHash(m)) + len(DHash(m)); n != 16 {
			t.Errorf("%v: %d bytes of pHash and dHash", size, n)
		}
	}
}

func BenchmarkHashes(b *testing.B) {
	size := image.Rect(0, 0, 4000, 3000)
	small := scene(1, 400, 300)
	fill := func(pix []uint8) {
		for i := range pix {
			pix[i] = small.Pix[i%len(small.Pix)]
		}
	}
	ycc := image.NewYCbCr(size, image.YCbCrSubsampleRatio420)
	rgba, nrgba := image.NewRGBA(size), image.NewNRGBA(size)
	for _, pix := range [][]uint8{ycc.Y, ycc.Cb, ycc.Cr, nrgba.Pix} {
		fill(pix)
	}
	copy(rgba.Pix, nrgba.Pix)
	for _, m := range []image.Image{ycc, rgba, nrgba} {
		for _, h := range []struct {
			name string
			hash func(image.Image)
		}{
			{"PDQ", func(m image.Image) { PDQ(m) }},
			{"PDQTurns", func(m image.Image) { PDQTurns(m) }},
			{"PHash", func(m image.Image) { PHash(m) }},
			{"DHash", func(m image.Image) { DHash(m) }},
			{"Look", func(m image.Image) { Look(m) }},
		} {
			b.Run(fmt.Sprintf("%s/%T/12MP", h.name, m), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					h.hash(m)
				}
			})
		}
	}
}
