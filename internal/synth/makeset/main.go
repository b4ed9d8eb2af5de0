package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/fddhdb/fddhdb/codec/vecfile"
	"github.com/fddhdb/fddhdb/internal/synth"
)

func main() {
	err := command(os.Args[1:], os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "makeset:", err)
		os.Exit(1)
	}
}

// command runs a command line. args does not have the name of the program.
func command(args []string, stderr io.Writer) error {
	f := flag.NewFlagSet("makeset", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {
		fmt.Fprintln(stderr, "usage: makeset [flags] DIR\n\nIt writes train_NAME.npy and query_NAME.npy of each modality, and their labels, to the folder DIR.")
		f.PrintDefaults()
	}
	set := f.String("set", "nuswide", "nuswide, multilabel, pairs or embeddings")
	items := f.Int("items", 4000, "items to train on")
	queries := f.Int("queries", 500, "items to query with")
	seed := f.Uint64("seed", 0, "seed of the data")
	parts := f.Int("parts", 1, "files of the items to train on, train_image-00000.npy and so on")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 1 {
		return errors.New("the folder to write to is missing: makeset [flags] DIR")
	}
	if *items < 1 || *queries < 1 || *parts < 1 || *parts > *items {
		return fmt.Errorf("%d items, in %d parts, and %d queries: 1 or more of each are possible", *items, *parts, *queries)
	}
	data, labels, err := generate(*set, *items+*queries, *seed)
	if err != nil {
		return err
	}
	dir := f.Arg(0)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for p := range *parts {
		suffix := ""
		if *parts > 1 {
			suffix = fmt.Sprintf("-%05d", p)
		}
		if err := write(dir, "train", suffix, data.Slice(p**items / *parts, (p+1)**items / *parts), labels); err != nil {
			return err
		}
	}
	return write(dir, "query", "", data.Slice(*items, *items+*queries), labels)
}

// generate makes a set, and returns how many labels it has.
func generate(set string, items int, seed uint64) (*synth.Data, int, error) {
	switch set {
	case "nuswide":
		g, err := synth.NewNUSWide(seed, synth.DefaultNUSWideNoise)
		if err != nil {
			return nil, 0, err
		}
		return g.Data(0, items), synth.NUSWideLabels, nil
	case "multilabel":
		const labels = 24
		return synth.Pairs(synth.Config{
			Items: items, Classes: labels, LabelsPerItem: 4, Dims: []int{64, 48}, Noise: 2, Seed: seed,
		}), labels, nil
	case "pairs":
		const labels = 20
		return synth.Pairs(synth.Config{
			Items: items, Classes: labels, LabelsPerItem: 1, Dims: []int{128, 128}, Noise: 2, Seed: seed,
		}), labels, nil
	case "embeddings":
		rows := synth.Embeddings(0, items, 384, seed)
		return &synth.Data{Vectors: [][][]float32{rows}, Labels: make([][]uint32, items)}, 0, nil
	}
	return nil, 0, fmt.Errorf("there is no set %q: nuswide, multilabel, pairs and embeddings are possible", set)
}

// write writes the files of a part ("train" or "query") of a set, which may have no labels. suffix ends their names.
func write(dir, part, suffix string, data *synth.Data, labels int) error {
	for t, name := range []string{"image", "text"}[:len(data.Vectors)] {
		if err := vecfile.WriteAll(filepath.Join(dir, part+"_"+name+suffix+".npy"), data.Vectors[t]); err != nil {
			return err
		}
	}
	if labels == 0 {
		return nil
	}
	rows := make([][]uint8, data.Items())
	for i, set := range data.Labels {
		rows[i] = make([]uint8, labels)
		for _, l := range set {
			rows[i][l] = 1
		}
	}
	return vecfile.WriteAll(filepath.Join(dir, part+"_labels"+suffix+".npy"), rows)
}
