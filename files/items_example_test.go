package files_test

import (
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/files/table"
)

func ExampleOpenItems() {
	dir, err := os.MkdirTemp("", "files-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "items.jsonl")
	const text = `{"key":"cat.jpg","vectors":{"image":[0.25,1]},"labels":["cat"]}
{"key":"dog.jpg","vectors":{"image":[0.5,"NaN"]}}
`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		log.Fatal(err)
	}

	r, err := files.OpenItems(path, path)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	fmt.Println(r.Rows(), "items")
	var item table.Item
	for {
		err := r.Next(&item)
		if err == io.EOF {
			break
		}
		if err != nil {
			fmt.Println(err.Error()[len(dir)+1:])
			continue // with the next line
		}
		fmt.Println(item.Key, item.Vectors["image"], item.Labels)
	}
	// Output:
	// 2 items
	// cat.jpg [0.25 1] [cat]
	// items.jsonl: line 2: key "dog.jpg": vectors: "image": number 1: is a string, where a number is expected
}
