package command

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// The output has the fields of the contract, and no others hide behind them.
func TestTrainJSON(t *testing.T) {
	f := newFixture(t, 60, false)
	var got map[string]json.RawMessage
	mustJSON(t, &got, "train", f.db, "--bits", "16", "--rows", "50")
	for _, name := range []string{
		"space", "revision", "bits", "train_items", "method", "chosen", "sweeps",
		"objective", "bit_balance", "constant_bits", "distinct_codes", "seconds",
	} {
		if len(got[name]) == 0 {
			t.Errorf("%s is missing", name)
		}
	}
	if string(got["train_items"]) != "50" || string(got["bits"]) != "16" {
		t.Errorf("train_items %s, bits %s", got["train_items"], got["bits"])
	}
	if s := must(t, "stats", f.db, "--collection", "main", "--json"); !json.Valid([]byte(s)) {
		t.Error(s)
	}
}

// Where items have several labels training says how it has chosen the centre, unless it is
// given.
func TestTrainCentre(t *testing.T) {
	f := newFixture(t, 80, false)
	data := synth.Pairs(synth.Config{Items: 80, Seed: 2, Noise: 1, LabelsPerItem: 3})
	var labels strings.Builder
	for _, set := range data.Labels {
		fmt.Fprintln(&labels, strings.Trim(strings.ReplaceAll(fmt.Sprint(set), " ", ","), "[]"))
	}
	clitest.WriteFile(t, f.labels, labels.String())
	must(t, "import", f.db, "--init", "--collection", "several", "--vectors", "image="+f.image, "--vectors",
		"text="+f.text, "--labels", f.labels)
	train := []string{"train", f.db, "--collection", "several", "--bits", "16", "--anchors", "20"}
	var got struct {
		Centre float64
		Memory int64 `json:"memory_bytes"`
		Choice struct {
			Chosen *float64
			Tried  []struct {
				Centre     float64
				MAP        float64 `json:"map_tie"`
				Unlabelled float64 `json:"map_tie_unlabelled"`
			}
		} `json:"centre_choice"`
	}
	mustJSON(t, &got, train...)
	c := got.Choice
	if c.Chosen == nil || *c.Chosen != got.Centre || len(c.Tried) != 2 || c.Tried[0].Centre != .5 ||
		c.Tried[1].Centre != 0 {
		t.Fatalf("%+v", got)
	}
	for _, x := range c.Tried {
		if !(x.MAP > 0 && x.MAP <= 1 && x.Unlabelled > 0 && x.Unlabelled <= 1) {
			t.Errorf("%+v", x)
		}
	}
	if got.Memory <= 0 {
		t.Errorf("%d bytes of memory", got.Memory)
	}
}

// Equal seeds give equal codes; different seeds do not.
func TestTrainSeed(t *testing.T) {
	clitest.OneGoroutine(t)
	f := newFixture(t, 60, false)
	codes := func(seed string) string {
		must(t, "train", f.db, "--seed", seed, "--activate")
		must(t, "export", f.db, "--codes", f.path("codes.npy"))
		b, err := os.ReadFile(f.path("codes.npy"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	one := codes("1")
	if codes("1") != one {
		t.Error("the same seed gives other codes")
	}
	if codes("2") == one {
		t.Error("another seed gives the same codes")
	}
}
