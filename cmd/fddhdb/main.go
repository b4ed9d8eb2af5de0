package main

import (
	"os"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/command"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
)

func main() {
	exit.AbortOnCrash()
	os.Exit(command.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
