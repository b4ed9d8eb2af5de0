package reembed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/reembed"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var second = db.Modality{Name: "image2", Dim: 3}

// collection makes a collection of n items whose caption is their number. Every tenth has no vector.
func collection(t *testing.T, n int) (*db.DB, api.Database, api.Collection) {
	t.Helper()
	d := dbkit.Open(t)
	folder := api.Folder(d, nil)
	c, err := folder.CreateCollection(t.Context(), "main", db.Schema{
		Modalities: []db.Modality{{Name: "image", Dim: 2}, {Name: "words", Dim: 2}},
		Fields:     []db.Field{{Name: "caption", Type: db.String}},
		Encoders: []db.Encoder{{Modality: "image", Input: db.InputFile, Command: []string{"old"}},
			{Modality: "words", Input: db.InputText, Command: []string{"words"}}}})
	check(t, err)
	for i := range n {
		it := &db.Item{Key: fmt.Sprint("k", i), Fields: map[string]any{"caption": fmt.Sprint(i)}}
		if i%10 != 9 {
			it.Vectors = map[string][]float32{"image": {1, float32(i)}}
		}
		_, err := c.Put(t.Context(), it)
		check(t, err)
	}
	return d, folder, c
}

// encode makes a vector of a caption. It refuses the captions in refused.
func encode(refused ...string) func(context.Context, []*db.Item) ([]reembed.Vector, error) {
	return func(_ context.Context, items []*db.Item) (all []reembed.Vector, err error) {
		for _, it := range items {
			var x float32
			caption := it.Fields["caption"].(string)
			_, err := fmt.Sscan(caption, &x)
			v := reembed.Vector{Dense: []float32{x, 1, 2}, Err: err}
			if slices.Contains(refused, caption) {
				v = reembed.Vector{Err: errors.New("refused")}
			}
			all = append(all, v)
		}
		return all, nil
	}
}

func begin(t *testing.T, c api.Collection) {
	t.Helper()
	check(t, reembed.Begin(t.Context(), c, second, []db.Encoder{{Modality: "image2", Input: db.InputFile,
		Command: []string{"new"}}}))
}

// Each item that has a vector of the first modality gets one of the second, of what it has at the end,
// whatever interrupts the filling and whoever writes meanwhile.
func TestFill(t *testing.T) {
	_, d, c := collection(t, 1500)
	begin(t, c)
	begin(t, c) // again changes nothing
	broken := errors.New("the encoder is gone")
	calls := 0
	o := reembed.Options{From: "image", To: "image2", Items: 50}
	o.Encode = func(ctx context.Context, items []*db.Item) ([]reembed.Vector, error) {
		if calls++; calls == 5 {
			return nil, broken
		}
		return encode()(ctx, items)
	}
	n, err := reembed.Fill(t.Context(), d, c, o)
	if !errors.Is(err, broken) || n.Items != 200 {
		t.Fatal(n, err)
	}

	// Others change and delete items, and put new ones, while it goes on.
	var others sync.WaitGroup
	o.Encode = func(ctx context.Context, items []*db.Item) ([]reembed.Vector, error) {
		all, err := encode("77", "1234")(ctx, items)
		if calls++; calls == 12 {
			for _, key := range []string{items[0].Key, items[7].Key} {
				others.Go(func() {
					_, err := c.Merge(ctx, &db.Item{Key: key, Fields: map[string]any{"caption": "5000"}})
					check(t, err)
				})
			}
			others.Go(func() {
				_, err := c.Delete(ctx, items[3].Key)
				check(t, err)
			})
			others.Go(func() {
				_, err := c.Put(ctx, &db.Item{Key: "new", Vectors: map[string][]float32{"image": {1, 2}},
					Fields: map[string]any{"caption": "6000"}})
				check(t, err)
			})
			others.Wait()
		}
		return all, err
	}
	last := 0
	o.Progress = func(done, of int) {
		if done < last || done > of {
			t.Errorf("%d of %d after %d", done, of, last)
		}
		last = done
	}
	n, err = reembed.Fill(t.Context(), d, c, o)
	check(t, err)
	if n.Items != 1149 || n.Skipped != 1 || len(n.Reasons) != 1 || n.Reasons[0].Key != "k1234" {
		t.Errorf("%+v", n)
	}
	seen := 0
	for it, err := range c.Items(t.Context(), "") {
		check(t, err)
		x := it.Vectors["image2"]
		want := it.Vectors["image"] != nil && it.Key != "k1234"
		if (x != nil) != want {
			t.Errorf("%s has %v", it.Key, x)
		}
		if x != nil && fmt.Sprint(x[0]) != it.Fields["caption"] {
			t.Errorf("%s of caption %s has the vector %v", it.Key, it.Fields["caption"], x)
		}
		seen++
	}
	if seen != 1500 {
		t.Errorf("%d items", seen)
	}
	if n, err = reembed.Fill(t.Context(), d, c, reembed.Options{From: "image", To: "image2",
		Encode: encode()}); n.Items != 1 || err != nil {
		t.Error(n, err)
	}
}

// A switch exchanges the encoders that queries use, if nothing is missing.
func TestSwitch(t *testing.T) {
	_, d, c := collection(t, 30)
	standby := func() (all []string) {
		s, err := c.Schema(t.Context())
		check(t, err)
		for _, e := range s.Encoders {
			if e.Standby {
				all = append(all, e.Modality)
			}
		}
		return all
	}
	if err := reembed.Switch(t.Context(), c, "image", "image2", true); !errors.Is(err, db.ErrInvalid) {
		t.Error(err)
	}
	begin(t, c)
	if got := standby(); !slices.Equal(got, []string{"image2"}) {
		t.Error(got)
	}
	var lacks *reembed.IncompleteError
	err := reembed.Switch(t.Context(), c, "image", "image2", false)
	if !errors.As(err, &lacks) || lacks.Items != 27 {
		t.Error(err)
	}
	err = reembed.Switch(t.Context(), c, "words", "image2", false)
	if !errors.As(err, &lacks) || lacks.Input != db.InputText {
		t.Error(err)
	}
	_, err = reembed.Fill(t.Context(), d, c, reembed.Options{From: "image", To: "image2", Encode: encode()})
	check(t, err)
	check(t, reembed.Switch(t.Context(), c, "image", "image2", false))
	if got := standby(); !slices.Equal(got, []string{"image"}) {
		t.Error(got)
	}
	check(t, reembed.Switch(t.Context(), c, "image2", "image", false))
	if got := standby(); !slices.Equal(got, []string{"image2"}) {
		t.Error(got)
	}
	err = reembed.Begin(t.Context(), c, db.Modality{Name: "image2", Dim: 4}, nil)
	if !errors.Is(err, db.ErrInvalid) {
		t.Error(err)
	}
	err = reembed.Begin(t.Context(), c, second, []db.Encoder{{Modality: "image"}})
	if !errors.Is(err, db.ErrInvalid) {
		t.Error(err)
	}
}
