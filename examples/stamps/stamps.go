package main

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/fddhdb/fddhdb/codec/perceptual"
	"github.com/fddhdb/fddhdb/db"
)

const (
	picture = "picture"
	english = "english"
	greek   = "greek"
)

var modalities = []string{picture, english, greek}

// fewest is the size of the smallest group.
const fewest = 6

// A stamp is a picture with names.
type stamp struct {
	key, group string
	png        []byte
	look       []float32         // the features of the picture
	names      map[string]string // by language; some lack one
}

// readStamps reads the PNG files that have a text beside them. The group of a stamp is its folder, such as
// animals/birds. Letters are left out: they are a fifth of all, and easy.
func readStamps(folder string) (stamps []stamp, err error) {
	if _, err := os.Stat(filepath.Join(folder, "animals")); err != nil {
		return nil, fmt.Errorf("%q has no folder animals: give -stamps the folder stamps of Tux Paint", folder)
	}
	dir := os.DirFS(folder)
	err = fs.WalkDir(dir, ".", func(file string, _ fs.DirEntry, err error) error {
		key, isPicture := strings.CutSuffix(file, ".png")
		if err != nil || !isPicture || strings.Contains(key, "/alphabets/") {
			return err
		}
		text, err := fs.ReadFile(dir, key+".txt")
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the mirror image of another one
		} else if err != nil {
			return err
		}
		s := stamp{key: key, group: path.Dir(key), names: map[string]string{}}
		if parts := strings.SplitN(s.group, "/", 3); len(parts) == 3 {
			s.group = parts[0] + "/" + parts[1]
		}
		lines := strings.Split(string(text), "\n")
		s.names[english] = strings.TrimSpace(lines[0])
		for _, line := range lines {
			if name, is := strings.CutPrefix(line, "el.utf8="); is {
				s.names[greek] = strings.TrimSpace(name)
			}
		}
		if s.png, err = fs.ReadFile(dir, file); err != nil {
			return err
		}
		m, err := png.Decode(bytes.NewReader(s.png))
		if err != nil {
			return fmt.Errorf("%q: %w", file, err)
		}
		s.look = look(m)
		stamps = append(stamps, s)
		return nil
	})
	size := sizes(stamps)
	return slices.DeleteFunc(stamps, func(s stamp) bool { return size[s.group] < fewest }), err
}

// sizes returns the number of stamps in each group.
func sizes(stamps []stamp) map[string]int {
	n := map[string]int{}
	for _, s := range stamps {
		n[s.group]++
	}
	return n
}

// split deals the stamps of each group at random: four learn, one answers, one asks, and so on.
func split(stamps []stamp) (learn, answer, ask []stamp) {
	dealt := map[string]int{}
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(stamps)) {
		s := stamps[i]
		switch dealt[s.group] % fewest {
		case 4:
			answer = append(answer, s)
		case 5:
			ask = append(ask, s)
		default:
			learn = append(learn, s)
		}
		dealt[s.group]++
	}
	return learn, answer, ask
}

func (s stamp) has(modality string) bool {
	return s.names[modality] != "" || modality == picture && s.look != nil
}

// item returns the parts of a stamp as an item.
func (s stamp) item(key string, parts ...string) *db.Item {
	it := &db.Item{Key: key, Vectors: map[string][]float32{}, Sparse: map[string]db.Sparse{}}
	var names []string
	for _, m := range parts {
		if m == picture {
			it.Vectors[m], it.Payload = s.look, s.png // the page of fddhdb explore shows payloads
		} else if s.names[m] != "" {
			it.Sparse[m] = describe(s.names[m])
			names = append(names, s.names[m])
		}
	}
	if names != nil {
		it.Fields = map[string]any{"name": strings.Join(names, " / ")}
	}
	return it
}

// query asks with one part of a stamp for another modality.
func (s stamp) query(from, to string) db.Query {
	q := db.Query{From: from, To: to, Vector: s.look}
	if from != picture {
		words := describe(s.names[from])
		q.Vector, q.Sparse = nil, &words
	}
	return q
}

// look returns the features of a picture, on grey: transparent pixels hold any colour.
func look(m image.Image) []float32 {
	opaque := image.NewRGBA(image.Rect(0, 0, m.Bounds().Dx(), m.Bounds().Dy()))
	draw.Draw(opaque, opaque.Rect, image.NewUniform(color.Gray{Y: 128}), image.Point{}, draw.Src)
	draw.Draw(opaque, opaque.Rect, m, m.Bounds().Min, draw.Over)
	return perceptual.Look(opaque)
}

const wordsDim = 4096

// describe returns the features of a name: its words, and the runs of 3 to 5 letters in them, so that rose is
// near roses. Each is hashed to a dimension.
func describe(name string) (s db.Sparse) {
	counts := map[uint32]float64{}
	count := func(feature string) {
		h := fnv.New32a()
		h.Write([]byte(feature))
		counts[h.Sum32()%wordsDim]++
	}
	notLetter := func(r rune) bool { return !unicode.IsLetter(r) }
	for _, word := range strings.FieldsFunc(strings.ToLower(name), notLetter) {
		letters := []rune("^" + word + "$")
		count(word)
		for n := 3; n <= 5; n++ {
			for i := range len(letters) - n + 1 {
				count(string(letters[i : i+n]))
			}
		}
	}
	for _, i := range slices.Sorted(maps.Keys(counts)) {
		s.Index, s.Value = append(s.Index, i), append(s.Value, float32(math.Sqrt(counts[i])))
	}
	return s
}
