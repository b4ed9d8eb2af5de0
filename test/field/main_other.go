//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "field: this needs Linux, for its file systems, limits and signals")
	os.Exit(1)
}
