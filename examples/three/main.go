package main

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
)

var (
	kinds  = []string{"picture", "text", "sound"}
	things = []string{"dog", "rain", "guitar", "train", "sea"}
	words  = strings.Fields("bark paw leash drops umbrella wet strings song stage rails station whistle waves beach gull a the of in")
)

func main() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "fddhdb-three-")
	check(err)
	defer os.RemoveAll(dir)
	d, err := db.Open(dir, nil)
	check(err)
	defer d.Close()
	c, err := d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{
		{Name: "picture", Dim: 32}, {Name: "text", Dim: len(words), Sparse: true}, {Name: "sound", Dim: 20}}})
	check(err)
	batch := d.NewBatch()
	for i := range 600 {
		check(batch.Put(c, item(i)))
	}
	check(batch.Commit(ctx))
	_, err = c.Train(ctx, db.TrainOptions{})
	check(err)
	fmt.Println("Learned from 600 items. Each has two of picture, text and sound; none has all three.")

	show := func(asked string, q db.Query) {
		q.K = 3
		found, err := c.Search(ctx, q)
		check(err)
		var keys []string
		for _, hit := range found.Hits {
			keys = append(keys, hit.Key)
		}
		fmt.Printf("%-24s%ss: %s\n", asked, q.To, strings.Join(keys, ", "))
	}
	fmt.Println()
	beach := describe("waves on the beach")
	show(`"waves on the beach"`, db.Query{From: "text", To: "sound", Sparse: &beach})
	show("the sound of a guitar", db.Query{From: "sound", To: "picture", Vector: heard(2, 2000)})
	show("a picture of a dog", db.Query{From: "picture", To: "text", Vector: seen(0, 3000)})

	// New items ask, 60 of each kind. Precision of the first ten hits, times ten, is how many of them are
	// right.
	ask := db.Evaluation{Queries: map[string][][]float32{}, Sparse: map[string][]db.Sparse{}, Top: 10}
	for i := range 60 {
		thing := i % len(things)
		ask.Labels = append(ask.Labels, []string{things[thing]})
		ask.Queries["picture"] = append(ask.Queries["picture"], seen(thing, 4000+i))
		ask.Queries["sound"] = append(ask.Queries["sound"], heard(thing, 4000+i))
		ask.Sparse["text"] = append(ask.Sparse["text"], said(thing, 4000+i))
	}
	measured, err := c.Evaluate(ctx, ask)
	check(err)
	right := map[string]string{}
	for _, kind := range kinds {
		right[kind+kind] = "-"
	}
	for _, m := range measured {
		right[m.From+m.To] = fmt.Sprintf("%.1f", 10*m.Hamming.PrecisionAt)
	}
	fmt.Printf("\nSo many of the first ten hits are right; by chance it would be %.1f:\n\n%16s",
		10/float64(len(things)), "")
	for _, to := range kinds {
		fmt.Printf("%10s", to+"s")
	}
	fmt.Println()
	for _, from := range kinds {
		fmt.Printf("%-16s", "a "+from+" finds")
		for _, to := range kinds {
			fmt.Printf("%10s", right[from+to])
		}
		fmt.Println()
	}

	_, err = c.Put(ctx, &db.Item{Key: "new", Vectors: map[string][]float32{"picture": seen(3, 1000)}})
	check(err)
	rails := describe("rails")
	found, err := c.Search(ctx, db.Query{From: "text", To: "picture", Sparse: &rails, K: 601})
	check(err)
	before := 0
	for found.Hits[before].Key != "new" {
		before++
	}
	fmt.Printf("\nA new picture of a train has neither words nor labels. For \"rails\", %d of the 400 other\npictures come before it; 80 show trains.\n", before)
	fmt.Println("\nFor your own data, change what the function item in examples/three/main.go returns.")
}

// item returns item i. All that the database needs of your data are vectors, of any encoder, and labels.
func item(i int) *db.Item {
	thing := i % len(things)
	it := &db.Item{Key: fmt.Sprint(things[thing], " ", i), Labels: []string{things[thing]},
		Vectors: map[string][]float32{"picture": seen(thing, i), "sound": heard(thing, i)},
		Sparse:  map[string]db.Sparse{"text": said(thing, i)}}
	switch i / len(things) % 3 { // a silent picture, a recording, a film without subtitles
	case 0:
		delete(it.Vectors, "sound")
	case 1:
		delete(it.Vectors, "picture")
	case 2:
		it.Sparse = nil
	}
	return it
}

// seen and heard return the features of a picture and of a sound of a thing, said those
// of a text. A program of yours gets them from an encoder.
func seen(thing, i int) []float32  { return around(1, thing, i, 32) }
func heard(thing, i int) []float32 { return around(2, thing, i, 20) }

func around(sense uint64, thing, i, dim int) []float32 {
	ideal, own := rand.New(rand.NewPCG(sense, uint64(thing))), rand.New(rand.NewPCG(sense+2, uint64(i)))
	x := make([]float32, dim)
	for j := range x {
		x[j] = float32(ideal.NormFloat64() + 1.6*own.NormFloat64())
	}
	return x
}

func said(thing, i int) db.Sparse {
	random := rand.New(rand.NewPCG(5, uint64(i)))
	of := thing
	if random.IntN(3) == 0 {
		of = random.IntN(len(things)) // people write of other things, too
	}
	return describe(strings.Join([]string{"the", words[3*thing+random.IntN(3)], "of a",
		words[3*of+random.IntN(3)]}, " "))
}

// describe returns which words a text has.
func describe(text string) (s db.Sparse) {
	for j, word := range words {
		if slices.Contains(strings.Fields(text), word) {
			s.Index, s.Value = append(s.Index, uint32(j)), append(s.Value, 1)
		}
	}
	return s
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
