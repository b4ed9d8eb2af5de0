package command

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/internal/cells"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// Vectors whose mean is long beside what they differ from it by have rounded distances, by which an
// index finds too little: it says so, and a search compares all.
func TestIndexThatFindsTooLittle(t *testing.T) {
	effort.Slow(t)
	f := empty(t)
	x := synth.Embeddings(0, 500, 32, 1)
	for _, v := range x {
		for i := range v {
			v[i] += 100
		}
	}
	clitest.WriteNPY(t, f.path("x.npy"), x)
	must(t, "init", f.db, "--modality", "e:32", "--metric", "e=l2")
	must(t, "import", f.db, "--vectors", "e="+f.path("x.npy"))
	out := must(t, "index", f.db)
	if !strings.Contains(out, "of the nearest 1 a search finds all, by comparing all vectors") {
		t.Error(out)
	}
	var found struct{ Hits []struct{ Key string } }
	answer := must(t, "search", f.db, "--from", "e", "--to", "e", "--vectors", f.path("x.npy"), "--row", "7",
		"-k", "1", "--json")
	if err := json.Unmarshal([]byte(answer), &found); err != nil || len(found.Hits) != 1 ||
		found.Hits[0].Key != "7" || strings.Contains(answer, `"approximate":true`) {
		t.Error(err, answer)
	}
}

// The total of the seconds of an index is the sum of its phases.
func TestSecondsOfPhases(t *testing.T) {
	f := empty(t)
	clitest.WriteNPY(t, f.path("x.npy"), synth.Embeddings(0, 600, 16, 1))
	must(t, "init", f.db, "--modality", "e:16")
	must(t, "import", f.db, "--vectors", "e="+f.path("x.npy"))
	var index struct{ Seconds map[string]float64 }
	mustJSON(t, &index, "index", f.db)
	sum := 0.0
	for phase, s := range index.Seconds {
		if phase != "total" {
			sum += s
		}
	}
	if total := index.Seconds["total"]; total <= 0 || math.Abs(total-sum) > 1e-9 {
		t.Errorf("%v", index.Seconds)
	}
}

// Wherever a byte of a database is flipped, a search that compares all vectors as their index is
// damaged says so in one line, finds what it did, and index makes it again.
func TestDamagedIndex(t *testing.T) {
	effort.Slow(t)
	was := cells.ExactCost
	cells.ExactCost = 0
	defer func() { cells.ExactCost = was }()
	f := empty(t)
	clitest.WriteNPY(t, f.path("x.npy"), synth.Embeddings(0, 2000, 32, 1))
	must(t, "init", f.db, "--modality", "e:32")
	must(t, "import", f.db, "--vectors", "e="+f.path("x.npy"))
	must(t, "index", f.db, "--recall", ".9")
	must(t, "compact", f.db)
	search := []string{"search", f.db, "--from", "e", "--vectors", f.path("x.npy"), "--row", "7", "-k", "5"}
	exact := must(t, append(search, "--recall", "1")...)
	if out := must(t, append(search, "--explain")...); !strings.Contains(out, "plan cells") {
		t.Fatal(out)
	}
	tables := clitest.Must(filepath.Glob(filepath.Join(f.db, "store", "*.sst")))(t)
	met := false
	for _, name := range tables {
		sound := clitest.Must(os.ReadFile(name))(t)
		for at := 2000; at < len(sound) && !met; at += 4000 {
			damaged := bytes.Clone(sound)
			damaged[at] ^= 1
			clitest.Check(t, os.WriteFile(name, damaged, 0))
			code, out, remark := do(t, search...)
			if met = code == exit.Done && strings.Contains(remark, "damaged"); !met {
				continue
			}
			if out != exact || strings.Count(remark, "\n") != 1 ||
				!strings.Contains(remark, "index of vectors of e is damaged") {
				t.Errorf("found %s with %q, want %s", out, remark, exact)
			}
			if _, out, _ := do(t, append(search, "--explain")...); !strings.Contains(out,
				"plan vectors: 2,000 vectors compared") ||
				!strings.Contains(out, "as the index of e is damaged or outgrown") {
				t.Error(out)
			}
			if _, out, _ := do(t, append(search, "--explain", "--json")...); !strings.Contains(out,
				`"damaged_indexes":["e"]`) {
				t.Error(out)
			}
			must(t, "index", f.db, "--recall", ".9")
			if code, out, remark := do(t, append(search, "--explain")...); code != exit.Done ||
				!strings.Contains(out, "plan cells") || remark != "" {
				t.Errorf("made again: %d, %s%s", code, out, remark)
			}
		}
		if met {
			return
		}
		clitest.Check(t, os.WriteFile(name, sound, 0))
	}
	t.Error("no flipped byte has damaged the index alone")
}
