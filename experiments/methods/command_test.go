package methods

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// newSet writes a set of two modalities, with codes that give each of three labels bits of its own.
func newSet(t *testing.T) string {
	dir := t.TempDir()
	for part, items := range map[string]int{"train": 120, "query": 30} {
		d := synth.Pairs(synth.Config{Items: items, Classes: 3, Dims: []int{8, 5}, Seed: 2})
		labels, codes, signs := make([][]uint8, items), make([][]uint8, items), make([][]float32, items)
		for i, set := range d.Labels {
			labels[i], codes[i], signs[i] = make([]uint8, 3), []uint8{0, 0}, make([]float32, 16)
			labels[i][set[0]], codes[i][0] = 1, 15<<set[0]
			for k := range signs[i] {
				signs[i][k] = float32(2*(codes[i][k/8]>>(k%8)&1)) - 1
			}
		}
		clitest.WriteNPY(t, filepath.Join(dir, part+"_image.npy"), d.Vectors[0])
		clitest.WriteNPY(t, filepath.Join(dir, part+"_text.npy"), d.Vectors[1])
		clitest.WriteNPY(t, filepath.Join(dir, part+"_labels.npy"), labels)
		clitest.WriteNPY(t, filepath.Join(dir, "packed-"+part+".npy"), codes)
		clitest.WriteNPY(t, filepath.Join(dir, "signs-"+part+".npy"), signs)
	}
	return dir
}

func do(t *testing.T, args ...string) (stdout string, err error) {
	var out, errs bytes.Buffer
	err = common.Execute(t.Context(), Command(), args, &out, &errs)
	return out.String(), err
}

// Tables have each method in both protocols, unlabelled ones first, beside codes of other programs.
func TestCommand(t *testing.T) {
	dir := newSet(t)
	codes := func(name, kind string) string {
		file := filepath.Join(dir, kind)
		return "--codes=" + name + "=" + file + "-query.npy," + file + "-train.npy"
	}
	args := []string{dir, "--methods", "BATCH,scm", "--bits", "16,24", "--seeds", "2"}
	figure := filepath.Join(t.TempDir(), "a.svg")
	out, err := do(t, append(args, "--target", "--plot", figure, codes("ours", "packed"),
		codes("theirs", "signs"), codes("half:image", "signs"))...)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"| mAP (ties expected) | image->text, 16 | image->text, 24 | text->image, 16 | text->image, 24 |",
		"a ranking is classification of the query, and precision is flat in K.", "| BATCH + target | ",
		"| ours | 1.000 (1.000) |  | 1.000 (1.000) |  |", "| theirs | 1.000 (1.000) |  | 1.000 (1.000) |  |",
		"| half | 1.000 (1.000) |  |  |  |", "| SCM | text->image | 24 | ",
	} {
		if !strings.Contains(out, text) {
			t.Errorf("%q is missing in %s", text, out)
		}
	}
	if !strings.HasPrefix(out, filepath.Base(dir)+", unlabelled: ") || strings.Contains(out, "SCM + target") {
		t.Error(out)
	}
	svg, err := os.ReadFile(figure)
	if err != nil {
		t.Fatal(err)
	}
	texts, x, y := clitest.Texts(t, svg)
	if clitest.CheckApart(t, texts, x, y); !strings.Contains(strings.Join(texts, "\n"), "BATCH + target") {
		t.Error(texts)
	}

	if out, err = do(t, append(args, "--latex", "--split", "labelled")...); err != nil ||
		!strings.Contains(out, `image$\to$text, 16 & `) || !strings.HasSuffix(out, "\\end{tabular}\n\n") {
		t.Errorf("%v: %s", err, out)
	}

	out, err = do(t, append(args, "--json", "--split", "unlabelled", "--top", "7")...)
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var r row
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	if len(rows) != 8 {
		t.Fatalf("%d rows: %s", len(rows), out)
	}
	for i, r := range rows {
		other := rows[(i+4)%8] // the other method, of as many bits and the same direction
		if r.Split != unlabelled || r.Best != other.Method || math.Abs(r.Lead+other.Lead) > 1e-12 ||
			r.LeadError != other.LeadError || len(r.ByRadius) != r.Bits+1 || r.MAP < .3 || r.MAPTie < .3 {
			t.Errorf("%+v", r)
		}
	}
}

func TestCommandErrors(t *testing.T) {
	dir := newSet(t)
	for says, args := range map[string][]string{
		"there is no such method, but ITQ":   {"--methods", "magic"},
		"--bits":                             {"--bits", "12"},
		"labelled, unlabelled or both":       {"--split", "half"},
		"--json and --latex":                 {"--json", "--latex"},
		"a.png":                              {"--plot", "a.png"},
		"leave out --split unlabelled":       {"--codes", "a=b,c", "--split", "unlabelled"},
		"QUERY.npy,DATABASE.npy is expected": {"--codes", "a=b"},
		"FROM being one of image, text":      {"--codes", "a:sound=b,c"},
		"no such file":                       {"--codes", "a=b.npy,c.npy"},
		"of --bits 24": {"--bits", "24", "--codes", "a=" + filepath.Join(dir, "signs-query.npy") + "," +
			filepath.Join(dir, "signs-train.npy")},
		"one for each of the 30 labelled rows": {"--codes", "a=" + filepath.Join(dir, "signs-train.npy") + "," +
			filepath.Join(dir, "signs-train.npy")},
	} {
		out, err := do(t, append(args, dir)...)
		if err == nil || out != "" || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v, want %q; %s", args, err, says, out)
		}
	}
	if _, err := do(t, dir, dir, "--plot", "a.svg"); err == nil || !strings.Contains(err.Error(), "one SET") {
		t.Error(err)
	}
	if _, err := do(t, t.TempDir()); err == nil {
		t.Error("an empty folder is a set")
	}
}
