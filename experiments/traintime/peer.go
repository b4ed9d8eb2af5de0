package traintime

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/files/npy"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

//go:embed peer.py
var peerProgram []byte

// A comparison has the seconds of each step for our training, and for the same
// arithmetic in numpy. They are medians over some rounds, in which both sides take
// turns.
type comparison struct {
	Items int
	Ours  map[string]float64
	Peer  map[string]float64
}

// compare times both sides on the same items, which are in memory.
func compare(ctx context.Context, c config, python string, rounds int) (*comparison, error) {
	g, err := synth.NewNUSWide(c.Seed, c.Noise)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "traintime")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	data := g.Data(0, c.Items)
	if err := writePeerFiles(dir, data); err != nil {
		return nil, err
	}
	src := memorySource{data: data}
	if !c.Dense {
		for i := range c.Items {
			src.texts = append(src.texts, model.Sparse(g.AppendText(nil, nil, i)))
		}
	}
	var ours, theirs []map[string]float64
	for range rounds {
		out, err := exec.CommandContext(ctx, python, filepath.Join(dir, "peer.py"), dir,
			strconv.Itoa(c.Bits), strconv.Itoa(c.Anchors), strconv.FormatFloat(gamma, 'g', -1, 64)).Output()
		if err != nil {
			if failed, ok := err.(*exec.ExitError); ok {
				err = fmt.Errorf("%w: %s", err, failed.Stderr)
			}
			return nil, err
		}
		seconds := map[string]float64{}
		if err := json.Unmarshal(out, &seconds); err != nil {
			return nil, err
		}
		theirs = append(theirs, seconds)
		trained, err := c.train(ctx, src)
		if err != nil {
			return nil, err
		}
		ours = append(ours, trained.Report.Seconds)
	}
	return &comparison{c.Items, medians(ours), medians(theirs)}, nil
}

// writePeerFiles writes peer.py and its inputs.
func writePeerFiles(dir string, data *synth.Data) error {
	labels := make([][]float32, len(data.Labels))
	for i, set := range data.Labels {
		labels[i] = make([]float32, synth.NUSWideLabels)
		for _, l := range set {
			labels[i][l] = 1
		}
	}
	for name, rows := range map[string][][]float32{"image": data.Vectors[0], "text": data.Vectors[1],
		"labels": labels} {
		if err := npy.WriteAll(filepath.Join(dir, name+".npy"), rows); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "peer.py"), peerProgram, 0o600)
}

// medians returns the median of each step over the rounds.
func medians(rounds []map[string]float64) map[string]float64 {
	m := map[string]float64{}
	for step := range rounds[0] {
		var all []float64
		for _, r := range rounds {
			all = append(all, r[step])
		}
		m[step] = common.Median(all)
	}
	return m
}

func peerHeader(w io.Writer) {
	common.Head(w, 0, "items", "seconds", "scan", "statistics", "numpy", "moments", "kernel", "gram", "solve",
		"ratio")
}

// row writes the comparison as a row of a table.
func (c *comparison) row(w io.Writer) {
	cells := []string{strconv.Itoa(c.Items)}
	for _, x := range []float64{
		c.Ours["total"], c.Ours["scan"], c.Ours["statistics"],
		c.Peer["total"], c.Peer["moments"], c.Peer["kernel"], c.Peer["gram"], c.Peer["solve"],
		c.Ours["total"] / c.Peer["total"],
	} {
		cells = append(cells, fmt.Sprintf("%.2f", x))
	}
	common.Row(w, cells...)
}

// A memorySource is a sum.Source of items in memory.
type memorySource struct {
	data  *synth.Data
	texts []model.Vector // nil: the texts of data
}

func (s memorySource) Examples(context.Context) iter.Seq2[model.Example, error] {
	return func(yield func(model.Example, error) bool) {
		ex := model.Example{Vectors: make([]model.Vector, 2)}
		for i := range s.data.Labels {
			ex.Vectors[0] = model.Dense(s.data.Vectors[0][i])
			if s.texts == nil {
				ex.Vectors[1] = model.Dense(s.data.Vectors[1][i])
			} else {
				ex.Vectors[1] = s.texts[i]
			}
			ex.Labels = s.data.Labels[i]
			if !yield(ex, nil) {
				return
			}
		}
	}
}
