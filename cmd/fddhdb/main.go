package main

import (
	"os"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/command"
)

func main() {
	os.Exit(command.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
