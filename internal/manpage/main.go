package main

import (
	"bytes"
	"log"
	"os"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/command"
)

func main() {
	var page bytes.Buffer
	if err := command.ManPage(&page); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("docs/man/fddhdb.1", page.Bytes(), 0o666); err != nil {
		log.Fatal(err)
	}
}
