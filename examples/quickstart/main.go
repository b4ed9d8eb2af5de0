package main

import (
	"context"
	"fmt"
	"log"

	"github.com/fddhdb/fddhdb/db"
)

func main() {
	ctx := context.Background()
	d, err := db.OpenMemory(nil) // db.Open("colours.db", nil) keeps it in a folder
	check(err)
	defer d.Close()
	c, err := d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{
		{Name: "picture", Dim: 3}, {Name: "words", Dim: 5}}})
	check(err)
	words := []string{"red", "green", "blue", "dark", "light"}
	batch := d.NewBatch()
	for i := range 60 {
		hue, shade := i%3, 3+i/3%2
		rgb, text := make([]float32, 3), make([]float32, 5)
		rgb[hue] = []float32{.3, .9}[shade-3] + float32(i%7)/100
		text[hue], text[shade] = 1, 1
		check(batch.Put(c, &db.Item{
			Key:     fmt.Sprintf("%s %s %d", words[shade], words[hue], i),
			Labels:  []string{words[hue], words[shade]},
			Vectors: map[string][]float32{"picture": rgb, "words": text}}))
	}
	check(batch.Commit(ctx)) // all 60, durably, or none
	_, err = c.Train(ctx, db.TrainOptions{})
	check(err)
	darkBlue := []float32{0, 0, 1, 1, 0}
	r, err := c.Search(ctx, db.Query{From: "words", To: "picture", Vector: darkBlue, K: 3})
	check(err)
	for _, hit := range r.Hits {
		fmt.Printf("%s, %d bits away\n", hit.Key, hit.Distance)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
