package paper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	verbs "github.com/fddhdb/fddhdb/cmd/fddhdb/command"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// set is a folder with a generated set, and a database with its items.
type set struct{ dir, db string }

// newSet makes a set with so many items and queries of these modalities.
func newSet(t *testing.T, items, queries int, modalities ...string) set {
	t.Helper()
	s := set{dir: t.TempDir()}
	s.db = filepath.Join(t.TempDir(), "a.db")
	for part, data := range map[string]*synth.Data{
		"train": synth.Pairs(synth.Config{Items: items, Seed: 2, Noise: 1}),
		"query": synth.Pairs(synth.Config{Items: queries, Seed: 2, Noise: 1}),
	} {
		for i, name := range []string{"image", "text"} {
			if slices.Contains(modalities, name) {
				clitest.WriteNPY(t, filepath.Join(s.dir, part+"_"+name+".npy"), data.Vectors[i])
			}
		}
		labels := make([][]uint8, data.Items())
		for i, of := range data.Labels {
			labels[i] = make([]uint8, 12)
			for _, l := range of {
				labels[i][l] = 1
			}
		}
		clitest.WriteNPY(t, filepath.Join(s.dir, part+"_labels.npy"), labels)
	}
	args := []string{"import", s.db, "--init", "--labels", filepath.Join(s.dir, "train_labels.npy")}
	fddhdb(t, nil, append(args, s.vectors("train", modalities)...)...)
	return s
}

// vectors returns the flags that name the vectors of a part.
func (s set) vectors(part string, modalities []string) (flags []string) {
	for _, name := range modalities {
		flags = append(flags, "--vectors", name+"="+filepath.Join(s.dir, part+"_"+name+".npy"))
	}
	return flags
}

// fddhdb runs a verb, and reads the object that it prints into v unless that is nil.
func fddhdb(t *testing.T, v any, args ...string) {
	t.Helper()
	if v != nil {
		args = append(args, "--json")
	}
	var out, errs bytes.Buffer
	if code := verbs.Main(args, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("fddhdb %s: exit code %d, %s", strings.Join(args, " "), code, errs.String())
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal(out.Bytes(), v); err != nil {
		t.Fatal(err)
	}
}

// do runs an experiment.
func do(ctx context.Context, name string, args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	i := slices.IndexFunc(kinds(), func(x *kind) bool { return x.name == name })
	err = common.Execute(ctx, command(kinds()[i]), args, &out, &errs)
	return out.String(), errs.String(), err
}

// measured runs an experiment and returns its rows.
func measured(t *testing.T, kind string, args ...string) []measurement {
	t.Helper()
	out, errs, err := do(t.Context(), kind, append(args, "--json")...)
	if err != nil {
		t.Fatalf("%v, %s", err, errs)
	}
	var rows []measurement
	d := json.NewDecoder(strings.NewReader(out))
	for d.More() {
		var m measurement
		if err := d.Decode(&m); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, m)
	}
	return rows
}

// find returns the only row for which a condition is true.
func find(t *testing.T, rows []measurement, what string, is func(m measurement) bool) measurement {
	t.Helper()
	var found []measurement
	for _, m := range rows {
		if is(m) {
			found = append(found, m)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d rows are %s", len(found), what)
	}
	return found[0]
}

// sameAsTrain compares a row with a training with these flags in another database with
// the same items, and an eval after it.
func sameAsTrain(t *testing.T, m measurement, s set, flags ...string) {
	t.Helper()
	var trained struct {
		Objective []float64
		Items     int     `json:"train_items"`
		Constant  float64 `json:"constant_bits"`
		Balance   float64 `json:"bit_balance"`
		Method    string
	}
	fddhdb(t, &trained, append([]string{"train", s.db, "--activate"}, flags...)...)
	var evaluated map[string]retrieval
	args := []string{"eval", s.db, "--labels", filepath.Join(s.dir, "query_labels.npy")}
	fddhdb(t, &evaluated, append(args, s.vectors("query", []string{"image", "text"})...)...)
	if len(m.Retrieval) != len(evaluated) {
		t.Errorf("%s: %d pairs, %d of eval", m.Row, len(m.Retrieval), len(evaluated))
	}
	for pair, want := range evaluated {
		got := m.Retrieval[pair]
		for _, c := range [][2]float64{
			{got.MAP, want.MAP}, {got.MAPTie, want.MAPTie}, {got.MAPAsym, want.MAPAsym},
			{got.MAPTieAsym, want.MAPTieAsym},
			{got.PrecisionAt, want.PrecisionAt}, {got.PrecisionAtAsym, want.PrecisionAtAsym},
			{m.Objective, trained.Objective[len(trained.Objective)-1]}, {m.Constant, trained.Constant},
			{m.Balance, trained.Balance},
		} {
			if c[0] != c[1] {
				t.Errorf("%s, %s: %v, after train %s and eval %v", m.Row, pair, c[0],
					strings.Join(flags, " "), c[1])
			}
		}
	}
	if m.TrainItems != trained.Items || m.Method.String() != trained.Method ||
		m.Sweeps != len(trained.Objective) {
		t.Errorf("%s: %+v, trained %+v", m.Row, m, trained)
	}
}

// Every row equals the results of train with the same settings and of eval, and the
// database does not change.
func TestExperimentsAgainstTrain(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	set := newSet(t, 150, 60, "image", "text")
	run := func(kind string, flags ...string) []measurement {
		t.Helper()
		flags = append(flags, "--bits", "16")
		rows := measured(t, kind, append([]string{set.dir, "--seeds", "1", "--seed", "7", "--anchors", "40"},
			flags...)...)
		for _, m := range rows {
			if m.Experiment != kind || m.Seeds != 1 {
				t.Errorf("%+v", m)
			}
		}
		return rows
	}
	check := func(m measurement, flags ...string) {
		t.Helper()
		sameAsTrain(t, m, set, append([]string{"--seed", "7", "--anchors", "40"}, flags...)...)
	}
	named := func(name string) func(measurement) bool {
		return func(m measurement) bool { return m.Row == name }
	}
	given := func(features, kind, gamma string) []string {
		var flags []string
		for _, m := range []string{"image", "text"} {
			flags = append(flags, "--features", m+"="+features, "--map", m+"="+kind, "--gamma", m+"="+gamma)
			if kind != "linear" {
				flags = append(flags, "--width", m+"=1")
			}
		}
		return append(flags, "--bits", "16")
	}

	rows := run("ablation")
	var names []string
	for _, m := range rows {
		names = append(names, m.Row)
	}
	if want := []string{"full", "joint", "paper", "codes", "prior", "raw", "rbf", "width", "gamma", "start",
		"fixed", "FDDH", "FDDH_NR", "FDDH_NRM"}; !slices.Equal(names, want) {
		t.Errorf("rows %v", names)
	}
	for name, flags := range map[string][]string{
		"full":     {"--bits", "16"},
		"joint":    {"--bits", "16", "--method", "joint"},
		"paper":    {"--bits", "16", "--method", "paper"},
		"codes":    {"--bits", "16", "--aim", "codes"},
		"prior":    {"--bits", "16", "--prior", "0"},
		"raw":      {"--bits", "16", "--features", "image=raw", "--features", "text=raw"},
		"rbf":      {"--bits", "16", "--map", "image=rbf", "--map", "text=rbf"},
		"width":    {"--bits", "16", "--width", "image=1", "--width", "text=1"},
		"gamma":    {"--bits", "16", "--gamma", "image=.01", "--gamma", "text=.01"},
		"start":    {"--bits", "16", "--start", "1"},
		"fixed":    given("raw", "rbf", ".01"),
		"FDDH":     append(given("raw", "rbf", "1e-4"), "--method", "paper"),
		"FDDH_NR":  append(given("raw", "rbf", "1e-4"), "--method", "paper", "--delta", "inf"),
		"FDDH_NRM": append(given("raw", "linear", "1e-4"), "--method", "labels", "--aim", "codes"),
	} {
		check(find(t, rows, name, named(name)), flags...)
	}
	if d := find(t, rows, "FDDH_NR", named("FDDH_NR")).Delta; !math.IsInf(float64(d), 1) {
		t.Errorf("delta of FDDH_NR: %v", d)
	}

	rows = run("convergence", "--sweeps", "4")
	if len(rows) != 12 {
		t.Errorf("%d rows", len(rows))
	}
	for _, method := range []string{"labels", "joint", "paper"} {
		m := find(t, rows, "three sweeps of "+method,
			func(m measurement) bool { return m.Row == method && m.Sweeps == 3 })
		check(m, "--bits", "16", "--sweeps", "3", "--method", method)
	}

	rows = run("sensitivity", "--grid", "mu=.001,2", "--grid", "theta=.5,4", "--grid", "delta=.25,10")
	if len(rows) != 8 {
		t.Errorf("%d rows", len(rows))
	}
	for _, delta := range []float64{.25, 10} {
		m := find(t, rows, "a cell", func(m measurement) bool {
			return m.Mu["image"] == 2 && m.Mu["text"] == .5 && float64(m.Delta) == delta
		})
		settings := map[string][]string{}
		var chosen struct {
			Chosen map[string]struct {
				Map        string
				FeatureMap string `json:"feature_map"`
				Gamma      float64
			}
			Start int
		}
		fddhdb(t, &chosen, "train", set.db, "--seed", "7", "--anchors", "40", "--bits", "16", "--method",
			"paper")
		for name, c := range chosen.Chosen {
			settings[name] = []string{"--features", name + "=" + c.FeatureMap, "--map", name + "=" + c.Map,
				"--gamma", name + "=" + term.Setting(c.Gamma)}
		}
		check(m, append(append(settings["image"], settings["text"]...), "--bits", "16", "--method", "paper",
			"--mu", "image=2", "--mu", "text=.5", "--delta", term.Setting(delta), "--start",
			fmt.Sprint(chosen.Start))...)
	}
}

// Rows are means over seeds with sample standard deviations.
func TestExperimentSeeds(t *testing.T) {
	clitest.OneGoroutine(t)
	set := newSet(t, 150, 60, "image", "text")
	run := func(flags ...string) retrieval {
		t.Helper()
		rows := measured(t, "convergence",
			append([]string{set.dir, "--sweeps", "1", "--rows", "100", "--bits", "16", "--gamma", "text=.1"},
				flags...)...)
		return rows[0].Retrieval["text->image"]
	}
	one, two := run("--seeds", "1", "--seed", "4"), run("--seeds", "1", "--seed", "5")
	both := run("--seeds", "2", "--seed", "4")
	if one.MAP == two.MAP || one.MAPStd != 0 {
		t.Errorf("%+v, %+v", one, two)
	}
	mean, std := (one.MAPAsym+two.MAPAsym)/2, math.Abs(one.MAPAsym-two.MAPAsym)/math.Sqrt2
	if math.Abs(both.MAPAsym-mean) > 1e-12 || math.Abs(both.MAPAsymStd-std) > 1e-12 {
		t.Errorf("%v +- %v, want %v +- %v", both.MAPAsym, both.MAPAsymStd, mean, std)
	}
}

// Impossible settings are left out with a reason, once. If all are impossible, it is an
// error, and nothing is drawn.
func TestExperimentLeavesOut(t *testing.T) {
	clitest.OneGoroutine(t)
	set := newSet(t, 60, 20, "text")
	out, errs, err := do(t.Context(), "ablation", set.dir, "--seeds", "1", "--bits", "16", "--anchors", "12")
	if err != nil || !strings.Contains(out, "full") || strings.Contains(out, "FDDH_NR ") ||
		strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "FDDH, FDDH_NR left out") {
		t.Errorf("%v, %s, %s", err, out, errs)
	}
	none := filepath.Join(t.TempDir(), "none.svg")
	if out, _, err = do(t.Context(), "ablation", set.dir, "--seeds", "1", "--rows", "1", "--plot",
		none); err == nil || out != "" || !strings.Contains(err.Error(), "only one distinct set of labels") {
		t.Errorf("%v, %s", err, out)
	}
	if _, err := os.Stat(none); err == nil {
		t.Error("a figure of nothing")
	}
}

func TestExperimentErrors(t *testing.T) {
	set := newSet(t, 60, 20, "text")
	for _, tc := range []struct {
		kind string
		args []string
		says string
	}{
		{"ablation", nil, "accepts 1 arg(s)"},
		{"ablation", []string{t.TempDir()}, "has no files train_NAME.npy"},
		{"ablation", []string{"--grid", "mu=1"}, "unknown flag: --grid"},
		{"sensitivity", []string{"--grid", "gamma=1"}, "sensitivity goes over mu, theta, delta"},
		{"sensitivity", []string{"--grid", "mu=-1"}, "--grid mu: -1: 0 or more is possible"},
		{"sensitivity", []string{"--grid", "mu=NaN"}, "--grid mu"},
		{"sensitivity", []string{"--grid", "mu=x"}, `--grid mu: "x" is not a number`},
		{"sensitivity", []string{"--grid", "mu=,"}, "numbers with commas"},
		{"sensitivity", []string{"--grid", "delta=0"}, "--grid delta"},
		{"ablation", []string{"--bits", "12"}, "--bits"},
		{"ablation", []string{"--seeds", "0"}, "--seeds"},
		{"convergence", []string{"--method", "joint"}, "--method: convergence goes over several by itself"},
		{"sensitivity", []string{"--method", "labels"}, "sensitivity is that of the methods paper and joint"},
		{"sensitivity", []string{"--aim", "labels"}, "sensitivity is that of the methods paper and joint"},
		{"sensitivity", []string{"--prior", "0"}, "sensitivity is that of the methods paper and joint"},
		{"sensitivity", []string{"--delta", "1"}, "--delta: sensitivity goes over several"},
		{"ablation", []string{"--plot", "a.png"}, "a.png"},
		{"ablation", []string{"--method", "magic"}, "--method"},
	} {
		args := tc.args
		if len(args) > 0 && strings.HasPrefix(args[0], "--") {
			args = append(args, set.dir)
		}
		out, _, err := do(t.Context(), tc.kind, args...)
		if err == nil || out != "" || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s %v: %v, %q", tc.kind, tc.args, err, out)
		}
	}
}

// An interrupt keeps the measurements.
func TestExperimentInterrupt(t *testing.T) {
	set := newSet(t, 150, 60, "image", "text")
	figure := filepath.Join(t.TempDir(), "a.svg")
	i := slices.IndexFunc(kinds(), func(x *kind) bool { return x.name == "convergence" })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs bytes.Buffer
	stdout := writerFunc(func(p []byte) (int, error) {
		cancel() // after the first row
		return out.Write(p)
	})
	err := common.Execute(ctx, command(kinds()[i]), []string{set.dir, "--seeds", "1", "--plot", figure,
		"--json"}, stdout, &errs)
	if !errors.Is(err, context.Canceled) || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("%v, %s", err, out.String())
	}
	if _, err := os.Stat(figure); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a figure: %v", err)
	}
}

type writerFunc func(p []byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }
