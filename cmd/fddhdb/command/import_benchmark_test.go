package command

import (
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
)

// rowsOf returns n rows: item i has the number i, and zeros.
func rowsOf(n, cols int) [][]float32 {
	rows := make([][]float32, n)
	for i := range rows {
		rows[i] = make([]float32, cols)
		rows[i][0] = float32(i)
	}
	return rows
}

// hot returns 0/1 labels: item i has label i modulo cols.
func hot(n, cols int) [][]float32 {
	rows := make([][]float32, n)
	for i := range rows {
		rows[i] = make([]float32, cols)
		rows[i][i%cols] = 1
	}
	return rows
}

// Files of the names by which benchmarks are published go in without a flag about them.
func TestImportOfBenchmarks(t *testing.T) {
	f := fixture{dir: t.TempDir()}
	m := func(name string, rows [][]float32) clitest.Matrix { return clitest.Matrix{Name: name, Rows: rows} }
	for name, c := range map[string]struct {
		variables []clitest.Matrix
		part      string
		items     int
		label     string // of item 1
		note      string
	}{
		"train":    {[]clitest.Matrix{m("I_tr", rowsOf(5, 4)), m("T_tr", rowsOf(5, 3)), m("L_tr", hot(5, 2)), m("I_te", rowsOf(2, 4)), m("T_te", rowsOf(2, 3)), m("L_te", hot(2, 2))}, "", 5, "1", "image is I_tr; text is T_tr; labels are L_tr; the file also has --part query"},
		"query":    {[]clitest.Matrix{m("I_tr", rowsOf(5, 4)), m("T_tr", rowsOf(5, 3)), m("L_tr", hot(5, 2)), m("I_te", rowsOf(2, 4)), m("T_te", rowsOf(2, 3)), m("L_te", hot(2, 2))}, "query", 2, "1", "image is I_te"},
		"database": {[]clitest.Matrix{m("I_tr", rowsOf(2, 4)), m("T_tr", rowsOf(2, 3)), m("L_tr", hot(2, 2)), m("I_db", rowsOf(6, 4)), m("T_db", rowsOf(6, 3)), m("L_db", hot(6, 2))}, "", 6, "1", "image is I_db"},
		"XYL":      {[]clitest.Matrix{m("X", rowsOf(4, 4)), m("Y", rowsOf(4, 3)), m("L", hot(4, 2))}, "", 4, "1", "image is X; text is Y; labels are L"},
		"All":      {[]clitest.Matrix{m("LAll", hot(4, 2)), m("XAll", rowsOf(4, 4)), m("YAll", rowsOf(4, 3))}, "", 4, "1", "image is XAll"},
		"IAll":     {[]clitest.Matrix{m("IAll", rowsOf(4, 4)), m("TAll", rowsOf(4, 3)), m("LAll", hot(4, 2))}, "", 4, "1", "image is IAll"},
		"images":   {[]clitest.Matrix{m("images", rowsOf(4, 4)), m("YAll", rowsOf(4, 3)), m("LAll", hot(4, 2))}, "", 4, "1", "image is images; text is YAll"},
		"XTrain":   {[]clitest.Matrix{m("XTrain", rowsOf(4, 4)), m("YTrain", rowsOf(4, 3)), m("LTrain", hot(4, 2)), m("XTest", rowsOf(1, 4)), m("YTest", rowsOf(1, 3)), m("LTest", hot(1, 2))}, "train", 4, "1", "image is XTrain"},
		"classes":  {[]clitest.Matrix{m("I_tr", rowsOf(3, 4)), m("T_tr", rowsOf(3, 3)), m("L_tr", [][]float32{{7}, {9}, {7}})}, "", 3, "9", "labels are L_tr"},
		"none":     {[]clitest.Matrix{m("I_tr", rowsOf(3, 4)), m("T_tr", rowsOf(3, 3))}, "", 3, "", "there are no labels"},
	} {
		file, dir := f.path(name+".mat"), f.path(name+".db")
		clitest.WriteMAT(t, file, c.variables...)
		args := []string{"import", dir, "--init", "--items", file}
		if c.part != "" {
			args = append(args, "--part", c.part)
		}
		code, stdout, stderr := do(t, args...)
		if code != 0 || !strings.Contains(stderr, c.note) || !strings.Contains(stdout, "image (4 dimensions), text (3 dimensions)") {
			t.Errorf("%s: exit code %d, %s%s", name, code, stdout, stderr)
			continue
		}
		var item struct {
			Vectors map[string][]float32
			Labels  []string
		}
		mustJSON(t, &item, "get", dir, "1")
		if item.Vectors["image"][0] != 1 || item.Vectors["text"][0] != 1 || strings.Join(item.Labels, ",") != c.label {
			t.Errorf("%s: item 1 is %v", name, item)
		}
		var count struct{ Count int }
		if mustJSON(t, &count, "count", dir); count.Count != c.items {
			t.Errorf("%s: %d items", name, count.Count)
		}
	}
	for _, c := range []struct {
		file, want string
		code       int
		args       []string
	}{
		{"XYL.mat", "no variables of items for --part query: there is X, Y, L; names that are known are such as I_tr", 1, []string{"--part", "query"}},
		{"XYL.mat", "--part test: database, train, query are possible", 2, []string{"--part", "test"}},
		{"XYL.mat", "a .mat has neither keys nor columns", 2, []string{"--key-column", "X"}},
		{"missing.mat", "no such file", 1, nil},
	} {
		code, _, stderr := do(t, append([]string{"import", f.path("bad.db"), "--init", "--items", f.path(c.file)}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%s %v: exit code %d, %s", c.file, c.args, code, stderr)
		}
	}
	clitest.WriteMAT(t, f.path("odd.mat"), m("features", rowsOf(2, 2)), m("L", hot(2, 2)))
	if code, _, stderr := do(t, "import", f.path("bad.db"), "--init", "--items", f.path("odd.mat")); code != 1 || !strings.Contains(stderr, "there is features, L; names that are known") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	// A variable of one number an item may be labels: the user says so.
	classes := [][]float32{{7}, {9}, {7}}
	for name, variables := range map[string][]clitest.Matrix{
		"y": {m("X", rowsOf(3, 4)), m("y", classes)}, "x": {m("X", classes), m("Y", rowsOf(3, 4))}, "row": {m("X", rowsOf(3, 4)), m("Y", [][]float32{{7, 9, 7}})},
		"both": {m("I_tr", rowsOf(3, 4)), m("T_tr", classes), m("L_tr", hot(3, 2))},
	} {
		file, dir := f.path("class "+name+".mat"), f.path("class "+name+".db")
		clitest.WriteMAT(t, file, variables...)
		code, _, stderr := do(t, "import", dir, "--init", "--items", file)
		_, flags, ok := strings.Cut(stderr, "is no modality: --vectors NAME=")
		vectors, labels, ok2 := strings.Cut(flags, " --labels ")
		labels, _, ok3 := strings.Cut(labels, " says what the file has")
		if code != 1 || !ok || !ok2 || !ok3 {
			t.Errorf("%s: exit code %d, %s", name, code, stderr)
			continue
		}
		must(t, "import", dir, "--init", "--vectors", "image="+vectors, "--labels", labels)
		var item struct{ Labels []string }
		want := map[bool]string{true: "1", false: "9"}[name == "both"]
		if mustJSON(t, &item, "get", dir, "1"); strings.Join(item.Labels, ",") != want {
			t.Errorf("%s: item 1 has labels %q", name, item.Labels)
		}
	}
	clitest.WriteMAT(t, f.path("one.mat"), m("X", rowsOf(1, 4)), m("Y", rowsOf(1, 3))) // one item
	if code, _, stderr := do(t, "import", f.path("one.db"), "--init", "--items", f.path("one.mat")); code != 0 {
		t.Errorf("one item: exit code %d, %s", code, stderr)
	}

	clitest.WriteMAT(t, f.path("lengths.mat"), m("X", rowsOf(2, 2)), m("Y", rowsOf(3, 2)), m("L", hot(2, 2)))
	if code, _, stderr := do(t, "import", f.path("bad.db"), "--init", "--items", f.path("lengths.mat")); code != 1 || !strings.Contains(stderr, "lengths.mat:Y has 3 rows") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if code, stdout, _ := do(t, "import", f.path("bad.db"), "--init", "--items", f.path("XYL.mat"), "--dry-run"); code != 0 || !strings.Contains(stdout, "X       4 x 4  vector image") {
		t.Errorf("exit code %d, %s", code, stdout)
	}
	// Queries of the same file are evaluated.
	must(t, "train", f.path("train.db"), "--bits", "8", "--anchors", "4")
	file := f.path("train.mat")
	must(t, "eval", f.path("train.db"), "--vectors", "image="+file+":I_te", "--vectors", "text="+file+":T_te", "--labels", file+":L_te")
}
