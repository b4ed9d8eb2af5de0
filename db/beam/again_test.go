package beam

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// The program runs with relative paths, and its workers run in another folder. A bad row is left out. Codes
// and a shard that were deleted are made again.
func TestProgram(t *testing.T) {
	s := newSet(t, synth.Config{Seed: 3, Items: 900, Classes: 7, LabelsPerItem: 3, Dims: []int{6, 5}}, 3)
	s.write(t, "keys-01.txt", strings.Replace(string(s.read(t, "keys-01.txt")), "key 317\n", "\n", 1))
	worker := workerFlags(t, prism(t), "PROCESS")
	program := program(t, "fddhdb-beam")
	run := func(want int, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, append(args, worker...)...)
		cmd.Dir = s.dir
		b, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != want {
			t.Fatalf("%q: %v: %s", args, err, b)
		}
		return string(b)
	}
	input := []string{"--vectors", "image=image-*.npy", "--vectors", "text=text-*.npy", "--labels",
		"labels-*.txt", "--keys", "keys-*.txt", "--silence", "20s"}
	with := func(verb string, more ...string) []string {
		return append(append([]string{verb}, input...),
			more...)
	}
	if said := run(1, with("train", "--bits", "16", "--anchors", "12", "--model",
		"a.model")...); !strings.Contains(said, "keys-01.txt: line 18 is empty") {
		t.Errorf("it says %s", said)
	}
	input = append(input, "--on-error", "skip")
	run(0, with("train", "--bits", "16", "--anchors", "12", "--model", "a.model", "--rejected",
		"bad.jsonl")...)
	var bad Rejected
	if err := json.Unmarshal(s.read(t, "bad.jsonl"), &bad); err != nil || bad.Row != 17 ||
		!strings.Contains(bad.Reason, "line 18 is empty") {
		t.Errorf("%+v, %v", bad, err)
	}
	for _, wrong := range [][]string{
		{"train", "--model", "image-00.npy"}, {"build", "--out", "o", "--rejected", "a.model"},
		{"build", "--out", "o", "--temp", "a.model"},
		{"encode", "--model", "a.model", "--out", "o", "--temp", "a.model"},
	} {
		run(2, with(wrong[0], wrong[1:]...)...)
	}
	if len(s.read(t, "a.model")) < 1000 || len(s.read(t, "image-00.npy")) < 1000 {
		t.Fatal("a file was overwritten")
	}
	run(0, with("encode", "--model", "a.model", "--out", "codes", "--temp", "kept")...)
	keys := s.read(t, "codes/keys-00000.txt")
	if n := bytes.Count(keys, []byte("\n")); n != 899 || bytes.Contains(keys, []byte("key 317\n")) {
		t.Errorf("%d keys", n)
	}
	for _, name := range []string{"codes/codes-00000.npy", "codes/codes-00000.json"} {
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	run(0, with("encode", "--model", "a.model", "--out", "codes", "--temp", "kept")...)
	if len(s.read(t, "codes/codes-00000.npy")) < 899*2 {
		t.Error("codes that were removed are not made again")
	}
	run(0, with("build", "--model", "a.model", "--out", "shards", "--shards", "3")...)
	for _, name := range []string{"shard-0001", "build.json"} {
		if err := os.RemoveAll(filepath.Join(s.dir, "shards", name)); err != nil {
			t.Fatal(err)
		}
	}
	run(0, with("build", "--model", "a.model", "--out", "shards", "--shards", "3")...)
	left, err := filepath.Glob(filepath.Join(s.dir, "*.tmp"))
	if err != nil || len(left) > 1 { // that of the training that has failed
		t.Errorf("%v is left, %v", left, err)
	}
}

// Files that were repaired, both of two bad ones, are read again; files that change while a run is
// interrupted are another input.
func TestChangedFiles(t *testing.T) {
	s := newSet(t, synth.Config{Seed: 6, Items: 600, Classes: 4, Dims: []int{6, 5}}, 3)
	r := testRun(t)
	want := trained(t, s.in, small(1), testRun(t))
	good := map[string][]byte{}
	for _, name := range []string{"keys-00.txt", "keys-02.txt"} {
		good[name] = s.read(t, name)
		b := bytes.Replace(bytes.Clone(good[name]), []byte("key 4"), []byte("\n\n\n\n\n"), 1)
		s.write(t, name, string(b))
	}
	times := map[string]time.Time{}
	for name := range good {
		info, err := os.Stat(filepath.Join(s.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		times[name] = info.ModTime()
	}
	if _, err := Train(t.Context(), &s.in, small(1), r); err == nil {
		t.Fatal("bad keys were taken")
	}
	for name, b := range good { // of the same size and, at worst, of the same time
		s.write(t, name, string(b))
		if err := os.Chtimes(filepath.Join(s.dir, name), times[name], times[name]); err != nil {
			t.Fatal(err)
		}
	}
	if got := trained(t, s.in, small(1), r); !bytes.Equal(got, want) {
		t.Error("another model")
	}
}

// A task that is ended stops at once, also where it goes on in other files; rows that have gone are an error.
func TestEachEnds(t *testing.T) {
	s := newSet(t, synth.Config{Seed: 6, Items: 60, Classes: 4, Dims: []int{6, 5}}, 3)
	r := testRun(t)
	survey, err := r.survey(t.Context(), &s.in)
	if err != nil {
		t.Fatal(err)
	}
	w, err := workerOf(t.Context(), survey.path)
	if err != nil {
		t.Fatal(err)
	}
	tasks, _, err := survey.good().tasks(taskItems)
	if err != nil || len(tasks) != 1 || len(tasks[0].Segments) != 3 {
		t.Fatalf("%+v, %v", tasks, err)
	}
	n := 0
	enough := errors.New("enough")
	err = w.each(t.Context(), &tasks[0], func(int, int, *db.Item) error {
		n++
		if n == 25 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || n != 25 {
		t.Errorf("after %d items: %v", n, err)
	}
	for _, name := range []string{"image-01.npy", "text-01.npy"} {
		s.write(t, name, string(s.read(t, strings.Replace(name, "01", "00", 1))))
	}
	other := newSet(t, synth.Config{Seed: 6, Items: 30, Classes: 4, Dims: []int{6, 5}}, 3)
	for _, kind := range []string{"image-02.npy", "text-02.npy", "labels-02.txt", "keys-02.txt"} {
		s.write(t, kind, string(other.read(t, kind)))
	}
	if err := w.each(t.Context(), &tasks[0], func(int, int, *db.Item) error { return nil }); err == nil ||
		!strings.Contains(err.Error(), "10 rows less") {
		t.Errorf("rows have gone: %v", err)
	}
}

func TestRunRefuses(t *testing.T) {
	s := newSet(t, synth.Config{Seed: 6, Items: 60, Classes: 4, Dims: []int{6, 5}}, 1)
	for says, r := range map[string]*Run{
		"no temporary folder": {},
		"--tries -1":          {Temp: t.TempDir(), Tries: -1},
		"--silence 1ns":       {Temp: t.TempDir(), Silence: 1},
		"--silence -1s":       {Temp: t.TempDir(), Silence: -time.Second},
	} {
		if _, err := Train(t.Context(), &s.in, small(1), r); !errors.Is(err, db.ErrInvalid) ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}
