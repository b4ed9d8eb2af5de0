package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/experiment"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// experimenting is a database, and the flags that name queries for it.
func experimenting(t *testing.T) (f fixture, queries []string) {
	t.Helper()
	f = newFixture(t, 150, true)
	must(t, "import", f.db, "--vectors", "image="+f.image, "--vectors", "text="+f.text) // unlabelled
	q := newFixture(t, 60, false)
	return f, []string{"--vectors", "image=" + q.image, "--vectors", "text=" + q.text, "--labels", q.labels}
}

// measured runs an experiment and returns its rows.
func measured(t *testing.T, args ...string) []experiment.Measurement {
	t.Helper()
	code, out, errs := do(t, append([]string{"experiment"}, append(args, "--json")...)...)
	if code != 0 {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	var rows []experiment.Measurement
	d := json.NewDecoder(strings.NewReader(out))
	for d.More() {
		var m experiment.Measurement
		if err := d.Decode(&m); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, m)
	}
	return rows
}

// find returns the only row for which a condition is true.
func find(t *testing.T, rows []experiment.Measurement, what string, is func(m experiment.Measurement) bool) experiment.Measurement {
	t.Helper()
	var found []experiment.Measurement
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
func sameAsTrain(t *testing.T, m experiment.Measurement, db string, queries []string, flags ...string) {
	t.Helper()
	var trained struct {
		Objective []float64
		Items     int     `json:"train_items"`
		Constant  float64 `json:"constant_bits"`
		Balance   float64 `json:"bit_balance"`
		Method    string
	}
	mustJSON(t, &trained, append([]string{"train", db, "--activate"}, flags...)...)
	var evaluated map[string]evalJSON
	mustJSON(t, &evaluated, append([]string{"eval", db}, queries...)...)
	if len(m.Retrieval) != len(evaluated) {
		t.Errorf("%s: %d pairs, %d of eval", m.Row, len(m.Retrieval), len(evaluated))
	}
	for pair, want := range evaluated {
		got := m.Retrieval[pair]
		for _, c := range [][2]float64{
			{got.MAP, want.MAP}, {got.MAPTie, want.MAPTie}, {got.MAPAsym, want.MAPAsym}, {got.MAPTieAsym, want.MAPTieAsym},
			{got.PrecisionAt, want.PrecisionAt}, {got.PrecisionAtAsym, want.PrecisionAtAsym},
			{m.Objective, trained.Objective[len(trained.Objective)-1]}, {m.Constant, trained.Constant}, {m.Balance, trained.Balance},
		} {
			if c[0] != c[1] {
				t.Errorf("%s, %s: %v, after train %s and eval %v", m.Row, pair, c[0], strings.Join(flags, " "), c[1])
			}
		}
	}
	if m.TrainItems != trained.Items || m.Method.String() != trained.Method || m.Sweeps != len(trained.Objective) {
		t.Errorf("%s: %+v, trained %+v", m.Row, m, trained)
	}
}

// Every row equals the results of train with the same settings and of eval, and the
// database does not change.
func TestExperimentsAgainstTrain(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	f, queries := experimenting(t)
	other := newFixture(t, 150, false)
	must(t, "import", other.db, "--vectors", "image="+other.image, "--vectors", "text="+other.text)
	state := func() string {
		t.Helper()
		codes := f.path("codes.npy")
		must(t, "export", f.db, "--codes", codes)
		b, err := os.ReadFile(codes)
		if err != nil {
			t.Fatal(err)
		}
		_, stats, _ := strings.Cut(must(t, "stats", f.db, "--json"), `"collections"`)
		return stats + string(b)
	}
	before := state()
	run := func(kind string, flags ...string) []experiment.Measurement {
		t.Helper()
		if kind != "bits" {
			flags = append(flags, "--bits", "16")
		}
		rows := measured(t, append(append([]string{f.db, kind, "--seeds", "1", "--seed", "7", "--anchors", "40"}, queries...), flags...)...)
		for _, m := range rows {
			if m.Experiment != kind || m.Seeds != 1 {
				t.Errorf("%+v", m)
			}
		}
		return rows
	}
	check := func(m experiment.Measurement, flags ...string) {
		t.Helper()
		sameAsTrain(t, m, other.db, queries, append([]string{"--seed", "7", "--anchors", "40"}, flags...)...)
	}
	named := func(name string) func(experiment.Measurement) bool {
		return func(m experiment.Measurement) bool { return m.Row == name }
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
	if want := []string{"full", "joint", "paper", "codes", "prior", "raw", "rbf", "width", "gamma", "start", "fixed", "FDDH", "FDDH_NR", "FDDH_NRM"}; !slices.Equal(names, want) {
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
		"FDDH":     append(given("raw", "rbf", "1e-4"), "--method", "paper", "--views", "target", "--fusion", "target"),
		"FDDH_NR":  append(given("raw", "rbf", "1e-4"), "--method", "paper", "--delta", "inf", "--views", "target", "--fusion", "target"),
		"FDDH_NRM": append(given("raw", "linear", "1e-4"), "--method", "labels", "--aim", "codes", "--views", "target", "--fusion", "target"),
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
		m := find(t, rows, "three sweeps of "+method, func(m experiment.Measurement) bool { return m.Row == method && m.Sweeps == 3 })
		check(m, "--bits", "16", "--sweeps", "3", "--method", method)
	}

	rows = run("sensitivity", "--grid", "mu=.001,2", "--grid", "theta=.5,4", "--grid", "delta=.25,10")
	if len(rows) != 8 {
		t.Errorf("%d rows", len(rows))
	}
	for _, delta := range []float64{.25, 10} {
		m := find(t, rows, "a cell", func(m experiment.Measurement) bool {
			return m.Mu["image"] == 2 && m.Mu["text"] == .5 && float64(m.Delta) == delta
		})
		settings := map[string][]string{}
		var chosen struct {
			Chosen map[string]struct {
				Map        string
				FeatureMap string `json:"feature_map"`
				Gamma      float64
			}
			Start struct{ Chosen int }
		}
		mustJSON(t, &chosen, "train", other.db, "--seed", "7", "--anchors", "40", "--bits", "16", "--method", "paper")
		for name, c := range chosen.Chosen {
			settings[name] = []string{"--features", name + "=" + c.FeatureMap, "--map", name + "=" + c.Map, "--gamma", name + "=" + term.Setting(c.Gamma)}
		}
		check(m, append(append(settings["image"], settings["text"]...), "--bits", "16", "--method", "paper",
			"--mu", "image=2", "--mu", "text=.5", "--delta", term.Setting(delta), "--start", fmt.Sprint(chosen.Start.Chosen))...)
	}

	rows = run("bits", "--grid", "bits=16,24")
	if len(rows) != 8 {
		t.Errorf("%d rows", len(rows))
	}
	check(find(t, rows, "24 bits", func(m experiment.Measurement) bool { return m.Row == "labels" && m.Bits == 24 }), "--bits", "24")

	rows = run("size", "--grid", "rows=60,90")
	if len(rows) != 2 || rows[1].TrainItems != 90 {
		t.Errorf("%+v", rows)
	}
	check(rows[0], "--bits", "16", "--rows", "60")
	// A quarter, 37 items, is less than the number of anchors.
	if rows = run("size"); len(rows) != 2 || rows[0].TrainItems != 75 || rows[1].TrainItems != 150 {
		t.Errorf("%+v", rows)
	}

	if after := state(); after != before {
		t.Errorf("before %s, after %s", before, after)
	}
}

// Rows are means over seeds with sample standard deviations.
func TestExperimentSeeds(t *testing.T) {
	clitest.OneGoroutine(t)
	f, queries := experimenting(t)
	run := func(flags ...string) experiment.Retrieval {
		t.Helper()
		rows := measured(t, append(append([]string{f.db, "size", "--grid", "rows=100", "--bits", "16", "--gamma", "text=.1"}, queries...), flags...)...)
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
// error.
func TestExperimentLeavesOut(t *testing.T) {
	clitest.OneGoroutine(t)
	f := newFixture(t, 60, false)
	queries := []string{"--vectors", "text=" + f.text, "--labels", f.labels, "--seeds", "1"}
	run := func(args ...string) (int, string, string) {
		return do(t, append(append([]string{"experiment", f.db}, args...), queries...)...)
	}
	code, out, errs := run("size", "--grid", "rows=1,40", "--bits", "16", "--plot", f.path("size.svg"))
	if code != 0 || !strings.Contains(out, "\n            40  ") || errs != "fddhdb: training on 1 items left out: only one distinct set of labels\n" {
		t.Errorf("exit code %d, %s, %s", code, out, errs)
	}
	if b, err := os.ReadFile(f.path("size.svg")); err != nil || !bytes.Contains(b, []byte("labelled items")) {
		t.Errorf("no figure: %v", err)
	}
	code, out, errs = run("ablation", "--bits", "16", "--anchors", "12")
	if code != 0 || !strings.Contains(out, "full") || strings.Contains(out, "FDDH_NR ") || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "FDDH, FDDH_NR left out") {
		t.Errorf("exit code %d, %s, %s", code, out, errs)
	}
	must(t, "put", f.db, "many", "--labels", "a,b,c,d,e,f,g,h", "--vector", "text=1,2,3,4,5")
	if code, out, errs = run("bits", "--grid", "bits=8", "--plot", f.path("none.svg")); code != exit.Usage || out != "" || !strings.Contains(errs, "12 labels do not fit in codes of 8 bits") {
		t.Errorf("exit code %d, %s, %s", code, out, errs)
	}
	if _, err := os.Stat(f.path("none.svg")); err == nil {
		t.Error("a figure of nothing")
	}
}

func TestExperimentErrors(t *testing.T) {
	f := newFixture(t, 60, false)
	queries := []string{"--vectors", "text=" + f.text, "--labels", f.labels}
	for _, tc := range []struct {
		args []string
		says string
	}{
		{[]string{f.db}, "which experiment? ablation, convergence, sensitivity, bits, size are possible"},
		{[]string{f.db, "sensitvity"}, "did you mean sensitivity?"},
		{[]string{f.db, "zzzzzzzz"}, "there is no experiment"},
		{[]string{f.db, "bits", "more"}, `"more"`},
		{[]string{f.db, "ablation", "--grid", "mu=1"}, "ablation goes over nothing that can be set"},
		{[]string{f.db, "sensitivity", "--grid", "gamma=1"}, "sensitivity goes over mu, theta, delta"},
		{[]string{f.db, "sensitivity", "--grid", "mu=-1"}, "--grid mu: -1: 0 or more is possible"},
		{[]string{f.db, "sensitivity", "--grid", "mu=NaN"}, "--grid mu"},
		{[]string{f.db, "sensitivity", "--grid", "mu=x"}, `--grid mu: "x" is not a number`},
		{[]string{f.db, "sensitivity", "--grid", "mu=,"}, "numbers with commas"},
		{[]string{f.db, "sensitivity", "--grid", "delta=0"}, "--grid delta"},
		{[]string{f.db, "bits", "--grid", "bits=12"}, "--grid bits"},
		{[]string{f.db, "size", "--grid", "rows=1.5"}, "not a whole number"},
		{[]string{f.db, "bits", "--seeds", "0"}, "--seeds 0"},
		{[]string{f.db, "bits", "--bits", "16"}, "--bits: bits goes over several by itself"},
		{[]string{f.db, "sensitivity", "--method", "labels"}, "--method labels: sensitivity is that of the methods paper and joint"},
		{[]string{f.db, "sensitivity", "--aim", "labels"}, "--aim labels: sensitivity is that of the methods paper and joint"},
		{[]string{f.db, "sensitivity", "--prior", "0"}, "--prior: sensitivity is that of the methods paper and joint"},
		{[]string{f.db, "sensitivity", "--centre", "0"}, "--centre: sensitivity is that of the methods paper and joint"},
		{[]string{f.db, "sensitivity", "--delta", "1"}, "--delta: sensitivity goes over several"},
		{[]string{f.db, "bits", "--plot", "a.pdf"}, "a.pdf"},
		{[]string{f.db, "size", "--method", "magic"}, "--method"},
		{[]string{f.db, "bits", "--where", "colour = 'red'"}, "--where: column 1"},
	} {
		code, out, errs := do(t, append(append([]string{"experiment"}, tc.args...), queries...)...)
		if code != exit.Usage || out != "" || !strings.Contains(errs, tc.says) {
			t.Errorf("%v: exit code %d, %q, %q", tc.args, code, out, errs)
		}
	}
	if code, _, errs := do(t, "experiment", f.db, "bits"); code != exit.Usage || !strings.Contains(errs, "experiment needs queries") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// An interrupt keeps the measurements.
func TestExperimentInterrupt(t *testing.T) {
	f, queries := experimenting(t)
	for _, asJSON := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		var out, errs bytes.Buffer
		e := &env{Printer: term.NewPrinter(io.Discard, &errs), stdin: strings.NewReader("")}
		e.Stdout = bufio.NewWriter(writerFunc(func(p []byte) (int, error) {
			cancel() // after the first row
			return out.Write(p)
		}))
		args := append([]string{"experiment", f.db, "bits", "--seeds", "1", "--plot", f.path("a.svg")}, queries...)
		if asJSON {
			args = append(args, "--json")
		} else {
			cancel()
		}
		if code := run(ctx, args, e); code != exit.Failed || errs.String() != "fddhdb: interrupted\n" {
			t.Errorf("exit code %d, %q", code, errs.String())
		}
		if rows := strings.Count(out.String(), "\n"); asJSON && rows != 1 || !asJSON && rows != 0 {
			t.Errorf("%d rows: %s", rows, out.String())
		}
		if _, err := os.Stat(f.path("a.svg")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("there is a figure: %v", err)
		}
		cancel()
	}
}

type writerFunc func(p []byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }
