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
		check(batch.Put(c, it))
	}
	check(batch.Commit(ctx))
	_, err = c.Train(ctx, db.TrainOptions{})
	check(err)
	_, err = c.Put(ctx, &db.Item{Key: "a new picture of a train", Vectors: map[string][]float32{"picture": seen(3, 1000)}})
	check(err)

	show := func(asked string, q db.Query) {
		q.K = 3
		found, err := c.Search(ctx, q)
		check(err)
		fmt.Printf("%s, %ss:", asked, q.To)
		for _, hit := range found.Hits {
			fmt.Printf(" %s (%d bits)", hit.Key, hit.Distance)
		}
		fmt.Println()
	}
	beach := describe("waves on the beach")
	show(`"waves on the beach"`, db.Query{From: "text", To: "sound", Sparse: &beach})
	show("the sound of a guitar", db.Query{From: "sound", To: "picture", Vector: heard(2, 2000)})
	show("a picture of a dog", db.Query{From: "picture", To: "text", Vector: seen(0, 3000)})

	// Sixty new items of each kind ask. The figure is the mean average precision; 1 is
	// perfect.
	ask := db.Evaluation{Queries: map[string][][]float32{}, Sparse: map[string][]db.Sparse{}}
	for i := range 60 {
		thing := i % len(things)
		ask.Labels = append(ask.Labels, []string{things[thing]})
		ask.Queries["picture"] = append(ask.Queries["picture"], seen(thing, 4000+i))
		ask.Queries["sound"] = append(ask.Queries["sound"], heard(thing, 4000+i))
		ask.Sparse["text"] = append(ask.Sparse["text"], said(thing, 4000+i))
	}
	measured, err := c.Evaluate(ctx, ask)
	check(err)
	for _, m := range measured {
		fmt.Printf("%s finds %s: mAP %.2f\n", m.From, m.To, m.Hamming.MAP)
	}
	rails := describe("rails")
	found, err := c.Search(ctx, db.Query{From: "text", To: "picture", Sparse: &rails, K: 100})
	check(err)
	fmt.Println(`"rails" finds the new picture of a train:`,
		slices.ContainsFunc(found.Hits, func(hit db.Hit) bool { return hit.Key == "a new picture of a train" }))
}

// seen and heard return the features of a picture and of a sound of a thing, said those
// of a text. A program of yours gets them from an encoder.
func seen(thing, i int) []float32  { return around(1, thing, i, 32) }
func heard(thing, i int) []float32 { return around(2, thing, i, 20) }

func around(sense uint64, thing, i, dim int) []float32 {
	ideal, own := rand.New(rand.NewPCG(sense, uint64(thing))), rand.New(rand.NewPCG(sense+2, uint64(i)))
	x := make([]float32, dim)
	for j := range x {
		x[j] = float32(ideal.NormFloat64() + 1.2*own.NormFloat64())
	}
	return x
}

func said(thing, i int) db.Sparse {
	random := rand.New(rand.NewPCG(5, uint64(i)))
	return describe(strings.Join([]string{"the", words[3*thing+random.IntN(3)], "of a", words[3*thing+random.IntN(3)]}, " "))
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
