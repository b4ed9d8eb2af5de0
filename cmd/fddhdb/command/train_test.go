package command

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
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

// Equal seeds give equal codes; different seeds do not.
func TestTrainSeed(t *testing.T) {
	clitest.OneGoroutine(t)
	f := newFixture(t, 60, false)
	codes := func(seed string) string {
		must(t, "train", f.db, "--seed", seed, "--activate")
		must(t, "export", f.db, "--codes", f.path("codes.npy"))
		b := clitest.Must(os.ReadFile(f.path("codes.npy")))(t)
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
