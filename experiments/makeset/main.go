package makeset

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/files/npy"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// Command returns the experiment.
func Command() *cobra.Command {
	o := options{items: 4000, queries: 500, parts: 1}
	cmd := common.New("makeset DIR", "Write a generated set of files",
		"DIR gets train_NAME.npy and query_NAME.npy of each modality, and their labels: what fddhdb import and other experiments read.",
		cobra.ExactArgs(1), func(_ *cobra.Command, args []string) error { return o.write(args[0]) })
	f := common.FlagsOf(cmd)
	f.StringVar(&o.set, "set", "nuswide", "nuswide, multilabel, pairs, tail, weak or embeddings")
	f.Count(&o.items, "items", "items to train on")
	f.Queries(&o.queries)
	f.Seed(&o.seed)
	f.Count(&o.parts, "parts", "files of the items to train on, train_image-00000.npy and so on")
	return cmd
}

// options are the values of the flags.
type options struct {
	set                   string
	items, queries, parts int
	seed                  uint64
}

// write writes a set to a folder, which it makes.
func (o *options) write(dir string) error {
	if o.parts > o.items {
		return fmt.Errorf("--parts %d: there are %d items", o.parts, o.items)
	}
	data, labels, err := generate(o.set, o.items+o.queries, o.seed)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for p := range o.parts {
		suffix := ""
		if o.parts > 1 {
			suffix = fmt.Sprintf("-%05d", p)
		}
		if err := write(dir, "train", suffix, data.Slice(p*o.items/o.parts, (p+1)*o.items/o.parts),
			labels); err != nil {
			return err
		}
	}
	return write(dir, "query", "", data.Slice(o.items, o.items+o.queries), labels)
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
	case "tail":
		return synth.Unbalanced(seed, items, false), 20, nil
	case "weak":
		const labels = 20
		data := synth.Pairs(synth.Config{
			Items: items, Classes: labels, LabelsPerItem: 1, Dims: []int{128, 128}, Noise: 2, Seed: seed,
		})
		rng := rand.New(rand.NewPCG(seed, 34))
		for _, x := range data.Vectors[0] {
			for j := range x {
				x[j] += 6 * float32(rng.NormFloat64())
			}
		}
		return data, labels, nil
	case "embeddings":
		rows := synth.Embeddings(0, items, 384, seed)
		return &synth.Data{Vectors: [][][]float32{rows}, Labels: make([][]uint32, items)}, 0, nil
	}
	return nil, 0, fmt.Errorf("there is no set %q: nuswide, multilabel, pairs, tail, weak and embeddings are possible",
		set)
}

// write writes the files of a part ("train" or "query") of a set, which may have no labels. suffix ends their
// names.
func write(dir, part, suffix string, data *synth.Data, labels int) error {
	for t, name := range []string{"image", "text"}[:len(data.Vectors)] {
		if err := npy.WriteAll(filepath.Join(dir, part+"_"+name+suffix+".npy"), data.Vectors[t]); err != nil {
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
	return npy.WriteAll(filepath.Join(dir, part+"_labels"+suffix+".npy"), rows)
}
