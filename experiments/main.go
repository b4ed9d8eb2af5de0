// Experiments repeats the measurements behind the documents of fddhdb:
//
//	go -C experiments run . help
//	go -C experiments run . NAME [flags]
//
// It is a module of its own, so that the product requires nothing for its sake and the tests of the product
// do not run its tests.
package main

import (
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/experiments/bounds"
	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/experiments/hashes"
	"github.com/fddhdb/fddhdb/experiments/joins"
	"github.com/fddhdb/fddhdb/experiments/labels"
	"github.com/fddhdb/fddhdb/experiments/makeset"
	"github.com/fddhdb/fddhdb/experiments/matrix"
	"github.com/fddhdb/fddhdb/experiments/methods"
	"github.com/fddhdb/fddhdb/experiments/paper"
	"github.com/fddhdb/fddhdb/experiments/streams"
	"github.com/fddhdb/fddhdb/experiments/traintime"
	"github.com/fddhdb/fddhdb/experiments/vectors"
)

func main() { os.Exit(common.Main(experiments()...)) }

// experiments returns all of them.
func experiments() []*cobra.Command {
	return slices.Concat(paper.Commands(), streams.Commands(), []*cobra.Command{bounds.Command(),
		hashes.Command(), joins.Command(), labels.Command(), makeset.Command(), matrix.Command(),
		methods.Command(), methods.NoiseCommand(), traintime.Command(), vectors.Command()})
}
