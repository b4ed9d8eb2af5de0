package importer_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/importer"
)

func Example() {
	dir, err := os.MkdirTemp("", "importer-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "bags.csv")
	const text = `id,title,embedding,tags
7,A red bag,"[1, 0.1]",red
8,A blue bag,"[0.1, 1]",blue
9,A crimson bag,"[0.9, 0.2]",red
`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	memory, err := db.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	d := api.Folder(memory, nil)
	defer d.Close()
	schema, err := importer.Schema(path, importer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	c, err := d.CreateCollection(ctx, "main", schema)
	if err != nil {
		log.Fatal(err)
	}
	done, err := importer.Import(ctx, d, c, path, importer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(done.Items, "items")
	for _, column := range done.Columns {
		fmt.Printf("%s: %s\n", column.Column, column.Becomes)
	}
	r, err := c.Search(ctx, db.Query{From: "embedding", Vector: []float32{1, 0}, K: 2})
	if err != nil {
		log.Fatal(err)
	}
	for _, hit := range r.Hits {
		fmt.Println(hit.Key)
	}
	// Output:
	// 3 items
	// id: key
	// title: field title
	// embedding: vector embedding
	// tags: labels
	// 7
	// 9
}
