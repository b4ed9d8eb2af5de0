package beam

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"
	"github.com/fddhdb/fddhdb/model/sum"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// small are settings that leave little to choose.
func small(seed uint64) db.TrainOptions {
	return db.TrainOptions{Options: fit.Options{
		Bits: 16, Seed: seed, Anchors: 12,
		Features: map[string]model.FeatureKind{"image": model.FeaturesZScore, "text": model.FeaturesRaw},
		Map:      map[string]model.MapKind{"image": model.MapRBF, "text": model.MapRBFLinear},
		Width:    map[string]float64{"image": 1, "text": 1},
	}}
}

// Whatever the files that items lie in, the model is that of one database to the last bit.
func TestTrainIsThatOfADatabase(t *testing.T) {
	for n, files := range map[int][]int{900: {1, 2, 8}, 2*sum.LeafItems + 4321: {1, 8}} {
		cfg := synth.Config{Seed: 3, Items: n, Classes: 7, Dims: []int{6, 5}, LabelsPerItem: 3}
		opt := small(5)
		var want []byte
		for _, parts := range files {
			s := newSet(t, cfg, parts)
			if want == nil {
				want = exported(t, s.database(t), opt)
			}
			if got := trained(t, s.in, opt, testRun(t)); !bytes.Equal(got, want) {
				t.Errorf("%d items in %d files: another model", n, parts)
			}
		}
	}
}

// Items that lack vectors, labels or both, in the order of a table, with settings that are chosen; and
// methods that need no labels.
func TestTrainOnTables(t *testing.T) {
	const n = 1500
	data := synth.Pairs(synth.Config{Seed: 8, Items: n, Classes: 5, Dims: []int{8, 8}})
	item := func(i int) *db.Item {
		it := &db.Item{Key: fmt.Sprint("k", i), Vectors: map[string][]float32{},
			Fields: map[string]any{"price": int64(i)}}
		if i%5 != 1 {
			it.Vectors["image"] = data.Vectors[0][i]
		}
		if i%7 != 2 {
			it.Vectors["text"] = data.Vectors[1][i]
		}
		if i%3 != 0 {
			it.Labels = []string{labelName(data.Labels[i][0]), "all"}[:1+i%2]
		}
		return it
	}
	dir := t.TempDir()
	for p := range 3 {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		for i := p * n / 3; i < (p+1)*n/3; i++ {
			it := item(i)
			if err := enc.Encode(map[string]any{"key": it.Key, "vectors": it.Vectors, "labels": it.Labels,
				"fields": it.Fields}); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("part-%d.jsonl", p)), b.Bytes(),
			0o666); err != nil {
			t.Fatal(err)
		}
	}
	in := Input{Items: dir + "/*.jsonl"}
	schema := db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 8}, {Name: "text", Dim: 8}},
		Fields: []db.Field{{Name: "price", Type: db.Int}}}
	for name, opt := range map[string]db.TrainOptions{
		"chosen":   {Options: fit.Options{Bits: 16, Anchors: 20, Seed: 2}},
		"rows":     {Options: small(1).Options, Rows: 333},
		"cca":      {Options: fit.Options{Bits: 16, Method: model.MethodCCAITQ, Seed: 4}},
		"cca rows": {Options: fit.Options{Method: model.MethodCCAITQ}, Rows: 700},
	} {
		t.Run(name, func(t *testing.T) {
			want := exported(t, fill(t, schema, n, item), opt)
			if got := trained(t, in, opt, testRun(t)); !bytes.Equal(got, want) {
				t.Error("another model")
			}
		})
	}
}

// A run that was ended goes on where it was.
func TestTrainGoesOn(t *testing.T) {
	s := newSet(t, synth.Config{Seed: 4, Items: 3 * sum.LeafItems, Classes: 5, Dims: []int{6, 5}}, 3)
	want := trained(t, s.in, small(1), testRun(t))
	r := testRun(t)
	ctx, cancel := context.WithCancel(t.Context())
	passes := map[string]bool{}
	r.Progress = func(stage string, done, total int64) {
		passes[stage] = true
		if stage == "statistics" {
			cancel()
		}
	}
	if _, err := Train(ctx, &s.in, small(1), r); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if !passes["survey"] || !passes["scan"] || !passes["moments"] {
		t.Fatalf("it was ended after %v", passes)
	}
	clear(passes)
	r.Progress = func(stage string, _, _ int64) { passes[stage] = true }
	if got := trained(t, s.in, small(1), r); !bytes.Equal(got, want) {
		t.Error("another model")
	}
	if passes["scan"] || passes["survey"] || !passes["statistics"] {
		t.Errorf("%v was made again", passes)
	}
}

// A file that cannot be read, or a bad row of it, is named. With skip a bad row is left out, and the model is
// that of the others.
func TestBadInput(t *testing.T) {
	cfg := synth.Config{Seed: 6, Items: 600, Classes: 4, Dims: []int{6, 5}}
	damage := map[string]struct {
		do   func(t *testing.T, s *set)
		says []string
		row  int // that is left out; -1 and -2: the group of files 1 or 2
	}{
		"a cut file": {func(t *testing.T, s *set) {
			b := s.read(t, "image-01.npy")
			s.write(t, "image-01.npy", string(b[:len(b)-10]))
		}, []string{"image-01.npy"}, -1},
		"no file of npy": {func(t *testing.T, s *set) { s.write(t, "text-02.npy", "hello") },
			[]string{"text-02.npy"}, -2},
		"rows that miss": {func(t *testing.T, s *set) { s.write(t, "labels-01.txt", "a\nb\n") },
			[]string{"labels-01.txt", "rows"}, -1},
		"another dimension": {func(t *testing.T, s *set) {
			b := s.read(t, "image-00.npy")
			s.write(t, "image-02.npy", strings.Replace(string(b), "(200, 6)", "(240, 5)", 1))
		}, []string{"image-02.npy"}, -2},
		"NaN": {func(t *testing.T, s *set) {
			b := s.read(t, "image-01.npy")
			binary.LittleEndian.PutUint32(b[128+4*6*17:], math.Float32bits(float32(math.NaN())))
			s.write(t, "image-01.npy", string(b))
		}, []string{"image-01.npy", "row 17"}, 200 + 17},
		"a key twice": {func(t *testing.T, s *set) {
			s.write(t, "keys-00.txt", strings.Replace(string(s.read(t, "keys-00.txt")), "key 31\n",
				"key 30\n", 1))
		}, []string{"keys-00.txt", "line 31", "line 32"}, 31},
	}
	for name, c := range damage {
		t.Run(name, func(t *testing.T) {
			s := newSet(t, cfg, 3)
			c.do(t, s)
			_, err := Train(t.Context(), &s.in, small(1), testRun(t))
			if err == nil {
				t.Fatal("it was taken")
			}
			if bad := (*InputError)(nil); !errors.As(err, &bad) {
				t.Errorf("%v is no InputError", err)
			}
			for _, says := range c.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%v does not say %q", err, says)
				}
			}
			s.in.Skip = true
			r := testRun(t)
			got, err := Train(t.Context(), &s.in, small(1), r)
			if err != nil {
				t.Fatal(err)
			}
			from, to, row := c.row, c.row+1, c.row%200 // of the items that are left out
			if c.row < 0 {
				from, to, row = -c.row*200, (1-c.row)*200, -1
			}
			if len(got.Rejected) != 1 || got.Rejected[0].Row != row ||
				!strings.Contains(got.Rejected[0].Reason, c.says[0]) {
				t.Fatalf("rejected: %+v", got.Rejected)
			}
			rows, groups := int64(1), int64(0)
			if c.row < 0 {
				rows, groups = 0, 1
			}
			if n := r.Counters(); n["rows rejected"] != rows || n["file groups left out"] != groups {
				t.Errorf("it counts %v", n)
			}
			others := *s
			others.data = &synth.Data{}
			for i := range s.data.Items() {
				if i < from || i >= to {
					others.data.Labels = append(others.data.Labels, s.data.Labels[i])
				}
			}
			for m := range s.data.Vectors {
				rows := append([][]float32{}, s.data.Vectors[m][:from]...)
				others.data.Vectors = append(others.data.Vectors, append(rows, s.data.Vectors[m][to:]...))
			}
			want := exported(t, others.database(t), small(1))
			if b, _ := got.File.MarshalBinary(); !bytes.Equal(b, want) {
				t.Error("another model than that of the other items")
			}
		})
	}
}

func (s *set) read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestInputRefuses(t *testing.T) {
	s := newSet(t, synth.Config{Seed: 6, Items: 60, Classes: 4, Dims: []int{6, 5}}, 3)
	for says, in := range map[string]Input{
		"no input":         {},
		"ways to give the": {Items: "x.jsonl", Vectors: s.in.Vectors},
		"no such file":     {Vectors: []NamedGlob{{"image", s.dir + "/nothing-*.npy"}}},
		"1 files, and 3":   {Vectors: []NamedGlob{s.in.Vectors[0], {"text", s.dir + "/text-00.npy"}}},
		"given twice":      {Vectors: []NamedGlob{s.in.Vectors[0], s.in.Vectors[0]}},
		"are about items":  {Items: "x.jsonl", Labels: "y"},
	} {
		_, err := Train(t.Context(), &in, small(1), testRun(t))
		bad := (*InputError)(nil) // of files, and else it is an argument
		if err == nil || !strings.Contains(err.Error(), says) ||
			errors.As(err, &bad) == errors.Is(err, db.ErrInvalid) {
			t.Errorf("%q: %v", says, err)
		}
	}
}
