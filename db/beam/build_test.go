package beam

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/db/shard"
	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/files/npy"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// modelFile learns a model of a set and returns its path.
func modelFile(t *testing.T, s *set, opt db.TrainOptions) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model")
	if err := os.WriteFile(path, trained(t, s.in, opt, testRun(t)), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// restore restores the shards of a build.
func restore(t *testing.T, out string, built *Built) (shards []*db.Collection) {
	t.Helper()
	for _, s := range built.Shards {
		from, err := backup.Folder(filepath.Join(out, s.Repository))
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "db")
		// as fddhdb restore does
		if _, err := db.Restore(t.Context(), from, dir, nil, db.RestoreOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := db.VerifyFolder(t.Context(), dir, nil, db.VerifyOptions{Deep: true},
			func(f report.Finding) error { return errors.New(f.String()) }); err != nil {
			t.Error(err)
		}
		d, err := db.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		c, err := d.Collection(built.Collection)
		if err != nil {
			t.Fatal(err)
		}
		items := 0
		for key, err := range c.Keys(t.Context(), "") {
			if items++; err != nil || shard.Of(key, len(built.Shards)) != s.Shard {
				t.Fatalf("%q is in shard %d, %v", key, s.Shard, err)
			}
		}
		if items != s.Items {
			t.Errorf("shard %d has %d items, not %d", s.Shard, items, s.Items)
		}
		shards = append(shards, c)
	}
	return shards
}

// Shards that are searched together answer as one database does that has all items and the same model.
func TestShardsAnswerAsOneDatabase(t *testing.T) {
	s := newSet(t, synth.Config{Seed: 5, Items: 3000, Classes: 9, LabelsPerItem: 2, Dims: []int{8, 6}}, 3)
	opt := small(2)
	opt.Bits = 64
	path := modelFile(t, s, opt)
	one := s.database(t)
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := one.ImportModel(t.Context(), file, db.ImportModelOptions{}); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	built, err := Build(t.Context(), &s.in, BuildOptions{Model: path, Out: out, Shards: 4}, testRun(t))
	if err != nil {
		t.Fatal(err)
	}
	if built.Items != 3000 || len(built.Shards) != 4 {
		t.Fatalf("%+v", built)
	}
	shards := restore(t, out, built)
	keys := map[string]int{}
	for i, c := range shards {
		for item, err := range c.Items(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			want, err := one.Get(t.Context(), item.Key)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(item.Code, want.Code) || item.CodeFrom != want.CodeFrom ||
				!slices.Equal(item.Vectors["image"], want.Vectors["image"]) ||
				len(item.Labels) != len(want.Labels) {
				t.Fatalf("item %q is another one", item.Key)
			}
			if shard.Of(item.Key, 4) != i {
				t.Fatalf("item %q is in shard %d", item.Key, i)
			}
			keys[item.Key]++
		}
	}
	if len(keys) != 3000 {
		t.Fatalf("%d keys", len(keys))
	}
	for i := range 200 {
		q := db.Query{From: "image", To: "text", Vector: s.data.Vectors[0][i*7], K: 20, Rerank: db.RerankNone}
		if i%2 == 1 {
			q.From, q.To, q.Vector = "text", "image", s.data.Vectors[1][i*7]
		}
		want, err := one.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var got []db.Hit
		for _, c := range shards {
			r, err := c.Search(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r.Hits...)
		}
		slices.SortStableFunc(got, func(a, b db.Hit) int { return a.Distance - b.Distance })
		got = got[:len(want.Hits)]
		byDistance := func(hits []db.Hit) map[int][]string {
			m := map[int][]string{}
			for _, h := range hits {
				m[h.Distance] = append(m[h.Distance], h.Key)
			}
			return m
		}
		g, w := byDistance(got), byDistance(want.Hits)
		last := want.Hits[len(want.Hits)-1].Distance // ties at the end may be cut differently
		for d, keys := range w {
			slices.Sort(keys)
			slices.Sort(g[d])
			if len(g[d]) != len(keys) || d != last && !slices.Equal(g[d], keys) {
				t.Fatalf("query %d: at distance %d: %v, not %v", i, d, g[d], keys)
			}
		}
	}
}

// A build that was ended goes on where it was, and never mixes with another one.
func TestBuildGoesOn(t *testing.T) {
	s := newSet(t, synth.Config{Seed: 5, Items: 900, Classes: 5, Dims: []int{8, 6}}, 2)
	path := modelFile(t, s, small(2))
	out := filepath.Join(t.TempDir(), "out")
	opt := BuildOptions{Model: path, Out: out, Shards: 5}
	r := testRun(t)
	ctx, cancel := context.WithCancel(t.Context())
	r.Progress = func(stage string, done, total int64) {
		if stage == "load" {
			cancel()
		}
	}
	if _, err := Build(ctx, &s.in, opt, r); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // the pipeline may go on for a while
	// A worker that died after its backup has left it without a word.
	if err := os.RemoveAll(filepath.Join(out, "shard-0001.json")); err != nil {
		t.Fatal(err)
	}
	stages := map[string]bool{}
	r.Progress = func(stage string, _, _ int64) { stages[stage] = true }
	built, err := Build(t.Context(), &s.in, opt, r)
	if err != nil {
		t.Fatal(err)
	}
	if built.Items != 900 || stages["survey"] {
		t.Errorf("%+v after %v", built, stages)
	}
	restore(t, out, built)
	again, err := Build(t.Context(), &s.in, opt, testRun(t)) // nothing is left to do
	if err != nil || !slices.Equal(again.Shards, built.Shards) {
		t.Errorf("%+v, %v", again, err)
	}
	opt.Shards = 4
	if _, err := Build(t.Context(), &s.in, opt, testRun(t)); err == nil ||
		!strings.Contains(err.Error(), "choose another folder") {
		t.Errorf("another build into the same folder: %v", err)
	}
	if _, err := Build(t.Context(), &s.in, BuildOptions{Model: path, Out: s.dir, Shards: 4},
		testRun(t)); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a build into a folder of something else: %v", err)
	}
}

// The codes are those that items have in a database with the model; items of backups are those of the files.
func TestEncode(t *testing.T) {
	s := newSet(t, synth.Config{Seed: 9, Items: 700, Classes: 6, Dims: []int{8, 6}}, 2)
	for i := range s.data.Labels {
		if i%4 == 0 {
			s.data.Labels[i] = nil
		}
	}
	for p := range 2 {
		var labels strings.Builder
		for _, set := range s.data.Labels[p*350 : (p+1)*350] {
			if len(set) > 0 {
				labels.WriteString(labelName(set[0]))
			}
			labels.WriteString("\n")
		}
		s.write(t, fmt.Sprintf("labels-%02d.txt", p), labels.String())
	}
	opt := small(2)
	path := modelFile(t, s, opt)
	one := s.database(t)
	b := exported(t, one, opt)
	if file, _ := os.ReadFile(path); !bytes.Equal(file, b) {
		t.Fatal("another model")
	}
	want := map[string]string{}
	for c, err := range one.Codes(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		want[c.Key] = string(c.Code)
	}
	// The same items, from the backups of two shards of them.
	shards := filepath.Join(t.TempDir(), "shards")
	if _, err := Build(t.Context(), &s.in, BuildOptions{Out: shards, Shards: 2}, testRun(t)); err != nil {
		t.Fatal(err)
	}
	for _, in := range []Input{s.in, {Backups: shards + "/shard-*"}} {
		out := filepath.Join(t.TempDir(), "out")
		e, err := Encode(t.Context(), &in, EncodeOptions{Model: path, Out: out}, testRun(t))
		if err != nil {
			t.Fatal(err)
		}
		if e.Items != 700 || e.Left != 0 || e.Files != 1 {
			t.Errorf("%+v", e)
		}
		codes, err := npy.ReadCodes(filepath.Join(out, "codes-00000.npy"))
		if err != nil {
			t.Fatal(err)
		}
		keys, err := files.ReadLines(filepath.Join(out, "keys-00000.txt"))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for i, key := range keys {
			got[key] = string(codes.At(i).AppendBytes(nil, codes.Bits()))
		}
		if !maps.Equal(got, want) {
			t.Error("other codes")
		}
	}
}

// Codes that encode has written are built into shards of collections that are given theirs.
func TestShardsOfCodes(t *testing.T) {
	s := newSet(t, synth.Config{Seed: 9, Items: 700, Classes: 6, Dims: []int{8, 6}}, 2)
	codes, out := filepath.Join(t.TempDir(), "codes"), filepath.Join(t.TempDir(), "out")
	if _, err := Encode(t.Context(), &s.in, EncodeOptions{Model: modelFile(t, s, small(2)), Out: codes},
		testRun(t)); err != nil {
		t.Fatal(err)
	}
	in := Input{Codes: codes + "/codes-*.npy", Keys: codes + "/keys-*.txt"}
	built, err := Build(t.Context(), &in, BuildOptions{Out: out, Shards: 2}, testRun(t))
	if err != nil {
		t.Fatal(err)
	}
	all, err := npy.ReadCodes(filepath.Join(codes, "codes-00000.npy"))
	if err != nil {
		t.Fatal(err)
	}
	shards := restore(t, out, built)
	for i := range 700 {
		key := fmt.Sprint("key ", i)
		item, err := shards[shard.Of(key, 2)].Get(t.Context(), key)
		if err != nil || !bytes.Equal(item.Code, all.At(i).AppendBytes(nil, 16)) {
			t.Fatalf("%q: %v, %v", key, item, err)
		}
	}
	if _, err := Train(t.Context(), &in, db.TrainOptions{}, testRun(t)); err == nil ||
		!strings.Contains(err.Error(), "nothing to learn") {
		t.Error(err)
	}
}

// Items without keys are numbered as an import numbers them.
func TestNumberedItems(t *testing.T) {
	s := newSet(t, synth.Config{Seed: 5, Items: 400, Classes: 5, Dims: []int{8, 6}}, 3)
	s.in.Keys = ""
	out := filepath.Join(t.TempDir(), "out")
	built, err := Build(t.Context(), &s.in, BuildOptions{Out: out, Shards: 3}, testRun(t))
	if err != nil {
		t.Fatal(err)
	}
	one := fill(t, db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 8}, {Name: "text", Dim: 6}}}, 400,
		func(i int) *db.Item {
			item := s.item(i)
			item.Key = ""
			return item
		})
	n := 0
	for _, c := range restore(t, out, built) {
		for item, err := range c.Items(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			want, err := one.Get(t.Context(), item.Key)
			if err != nil || !slices.Equal(item.Vectors["text"], want.Vectors["text"]) {
				t.Fatalf("item %q: %v", item.Key, err)
			}
			n++
		}
	}
	if n != 400 {
		t.Errorf("%d items", n)
	}
}

// Items of a shard file come back as they were.
func TestShardFile(t *testing.T) {
	items := []*db.Item{
		{Key: "a", Labels: []string{"x", "y"}, Payload: []byte("p"),
			Fields: map[string]any{"s": "t", "i": int64(1 << 60), "f": 1.5, "b": true,
				"at": time.Unix(5, 6000).UTC()}},
		{Key: "b", Vectors: map[string][]float32{"image": {1, -2, 3e38}, "a": make([]float32, 5000)}},
		{Key: "c", Sparse: map[string]db.Sparse{"text": {Index: []uint32{3, 1 << 20}, Value: []float32{.5,
			-1}}, "none": {Index: []uint32{}, Value: []float32{}}}},
	}
	var b bytes.Buffer
	w := newShardWriter(&b)
	for _, item := range items {
		if err := w.put(item.Key, item); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	n := 0
	err := readShard(bytes.NewReader(b.Bytes()), func(got *db.Item) error {
		if fmt.Sprint(got) != fmt.Sprint(items[n]) {
			t.Errorf("%v, not %v", got, items[n])
		}
		n++
		return nil
	})
	if err != nil || n != 3 {
		t.Errorf("%d items, %v", n, err)
	}
	for cut := range b.Len() {
		if err := readShard(bytes.NewReader(b.Bytes()[:cut]),
			func(*db.Item) error { return nil }); !errors.Is(err, errShardFile) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
	}
}

// FuzzShardFile reads shard files of any bytes.
func FuzzShardFile(f *testing.F) {
	var b bytes.Buffer
	w := newShardWriter(&b)
	_ = w.put("a", &db.Item{Labels: []string{"x"}, Vectors: map[string][]float32{"image": {1, 2}},
		Fields: map[string]any{"f": 2.5}})
	_ = w.put("b", &db.Item{Sparse: map[string]db.Sparse{"text": {Index: []uint32{1}, Value: []float32{2}}}})
	_ = w.close()
	f.Add(b.Bytes())
	f.Fuzz(func(_ *testing.T, b []byte) {
		_ = readShard(bytes.NewReader(b), func(*db.Item) error { return nil })
	})
}
