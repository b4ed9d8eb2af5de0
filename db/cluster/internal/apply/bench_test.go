package apply_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// BenchmarkApply tells how many items of codes a core applies in a second, in messages of a hundred.
func BenchmarkApply(b *testing.B) {
	benchmarkApply(b, db.Schema{Bits: 64}, nil, func(n int) *wire.Item {
		return &wire.Item{Code: []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n * 7), byte(n * 31), 1, 2,
			byte(n * 13)}}
	})
}

// BenchmarkApplyLearned does so for items with vectors of 128 and 64 dimensions, whose codes of 64 bits a
// model with 500 anchors makes: from their labels, or without labels from the vectors.
func BenchmarkApplyLearned(b *testing.B) {
	schema := db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 128}, {Name: "text", Dim: 64}}}
	data := synth.Pairs(synth.Config{Items: 4000, Seed: 1, Classes: 20, Dims: []int{128, 64}})
	var items []*db.Item
	for i := range data.Items() {
		x := data.Item(i)
		it := &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"image": x[0], "text": x[1]},
			Labels: []string{fmt.Sprint(data.Labels[i][0])}}
		items = append(items, it)
	}
	d := dbkit.MustOpen(b, b.TempDir(), nil)
	defer dbkit.MustClose(b, d)
	c, err := d.CreateCollection(b.Context(), "items", schema)
	if err != nil {
		b.Fatal(err)
	}
	dbkit.PutAll(b, d, c, items)
	dbkit.MustTrain(b, c, db.TrainOptions{Options: fit.Options{Bits: 64, Anchors: 500}})
	var file bytes.Buffer
	if err := c.ExportModel(b.Context(), &file); err != nil {
		b.Fatal(err)
	}
	for _, labels := range []bool{true, false} {
		b.Run(fmt.Sprintf("labels=%v", labels), func(b *testing.B) {
			benchmarkApply(b, schema, file.Bytes(), func(n int) *wire.Item {
				it := wire.ItemOf(items[n%len(items)])
				if !labels {
					it.Labels = nil
				}
				return it
			})
		})
	}
}

func benchmarkApply(b *testing.B, schema db.Schema, file []byte, item func(n int) *wire.Item) {
	d, err := db.Open(b.TempDir(), &db.Options{NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	s, err := apply.Open(b.Context(), d, apply.Identity{Cluster: "c", Shard: 0, Shards: 1})
	if err != nil {
		b.Fatal(err)
	}
	var messages []apply.Message
	add := func(o *wire.Op) {
		o.ID, o.Base = wire.NewID(), uint64(len(messages))
		data, err := o.Encode()
		if err != nil {
			b.Fatal(err)
		}
		messages = append(messages, apply.Message{Seq: uint64(len(messages) + 1), Data: data,
			Control: o.Kind != wire.Write})
	}
	add(&wire.Op{Kind: wire.CreateCollection, Collection: "items", Schema: &schema})
	if file != nil {
		add(&wire.Op{Kind: wire.ImportModel, Collection: "items", File: file, Space: 1})
		add(&wire.Op{Kind: wire.BuildSpace, Collection: "items", Space: 1, Rows: 1})
	}
	if _, err := s.Apply(b.Context(), messages); err != nil {
		b.Fatal(err)
	}
	begun := len(messages)
	const each = 100
	for i := range b.N/each + 1 {
		o := &wire.Op{Kind: wire.Write}
		for j := range each {
			it := *item(i*each + j)
			it.Key = fmt.Sprint("key-", i*each+j)
			o.Changes = append(o.Changes, wire.Change{Collection: "items", Kind: wire.Put, Item: &it})
		}
		add(o)
	}
	left := messages[begun:]
	b.ResetTimer()
	for len(left) > 0 {
		n := min(len(left), 200)
		done, err := s.Apply(b.Context(), left[:n])
		if err != nil {
			b.Fatal(err)
		}
		for _, o := range done {
			if o.Fault != nil {
				b.Fatal(o.Fault)
			}
		}
		left = left[n:]
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "items/s")
}
