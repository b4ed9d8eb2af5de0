package beam

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/memfs"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/s3"
	beamlog "github.com/apache/beam/sdks/v2/go/pkg/beam/log"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files/npy"
	"github.com/fddhdb/fddhdb/internal/synth"
)

func TestMain(m *testing.M) {
	flag.Parse()
	beamlog.LogLevel, beamlog.LogKind = "error", "text"
	beamlog.SetLogger(&beamlog.Structural{})
	sdk.Init()
	code := m.Run()
	if built {
		dir, _ := programs() // a test has had the error
		_ = os.RemoveAll(dir)
	}
	if err := Cleanup(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// testRun returns a way to run pipelines in this process.
func testRun(t *testing.T) *Run {
	t.Helper()
	return &Run{Temp: filepath.Join(t.TempDir(), "temp"), Tries: 1, Silence: time.Minute}
}

// set is generated data, in files of an input.
type set struct {
	data *synth.Data
	dir  string
	in   Input
}

// newSet generates pairs with labels, and writes them to so many files of each kind.
func newSet(t *testing.T, cfg synth.Config, parts int) *set {
	t.Helper()
	s := &set{data: synth.Pairs(cfg), dir: t.TempDir()}
	n := s.data.Items()
	for p := range parts {
		part := s.data.Slice(p*n/parts, (p+1)*n/parts)
		for m, name := range []string{"image", "text"} {
			if err := npy.WriteAll(filepath.Join(s.dir, fmt.Sprintf("%s-%02d.npy", name, p)),
				part.Vectors[m]); err != nil {
				t.Fatal(err)
			}
		}
		var labels, keys strings.Builder
		for i, set := range part.Labels {
			var names []string
			for _, l := range set {
				names = append(names, labelName(l))
			}
			fmt.Fprintln(&labels, strings.Join(names, ","))
			fmt.Fprintf(&keys, "key %d\n", p*n/parts+i)
		}
		s.write(t, fmt.Sprintf("labels-%02d.txt", p), labels.String())
		s.write(t, fmt.Sprintf("keys-%02d.txt", p), keys.String())
	}
	s.in = Input{
		Vectors: []NamedGlob{{"image", s.dir + "/image-*.npy"}, {"text", s.dir + "/text-*.npy"}},
		Labels:  s.dir + "/labels-*.txt", Keys: s.dir + "/keys-*.txt",
	}
	return s
}

func (s *set) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// labelName names a label so that neither numbers nor the alphabet are the order of appearance.
func labelName(l uint32) string { return fmt.Sprintf("l%d", (l*7+3)%100) }

// item returns an item of the data.
func (s *set) item(i int) *db.Item {
	item := &db.Item{Key: fmt.Sprintf("key %d", i), Vectors: map[string][]float32{
		"image": s.data.Vectors[0][i], "text": s.data.Vectors[1][i]}}
	for _, l := range s.data.Labels[i] {
		item.Labels = append(item.Labels, labelName(l))
	}
	return item
}

// database returns one database of the items, without a model.
func (s *set) database(t *testing.T) *db.Collection {
	t.Helper()
	var modalities []db.Modality
	for m, name := range []string{"image", "text"} {
		modalities = append(modalities, db.Modality{Name: name, Dim: len(s.data.Vectors[m][0])})
	}
	return fill(t, db.Schema{Modalities: modalities}, s.data.Items(), s.item)
}

// fill returns a collection of items.
func fill(t *testing.T, schema db.Schema, n int, item func(i int) *db.Item) *db.Collection {
	t.Helper()
	d, err := db.Open(filepath.Join(t.TempDir(), "db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := d.CreateCollection(t.Context(), "main", schema)
	if err != nil {
		t.Fatal(err)
	}
	b := d.NewBatch()
	for i := range n {
		b.Put(c, item(i))
	}
	if err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// exported returns the file of the model that a collection learns.
func exported(t *testing.T, c *db.Collection, opt db.TrainOptions) []byte {
	t.Helper()
	if _, err := c.Train(t.Context(), opt); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := c.ExportModel(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return []byte(b.String())
}

// trained returns the file of the model that pipelines learn.
func trained(t *testing.T, in Input, opt db.TrainOptions, r *Run) []byte {
	t.Helper()
	got, err := Train(t.Context(), &in, opt, r)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model")
	if err := got.Save(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(r.Temp); err == nil {
		if left, _ := os.ReadDir(r.Temp); len(left) > 0 {
			t.Errorf("the temporary folder holds %s", left[0].Name())
		}
	}
	return b
}
