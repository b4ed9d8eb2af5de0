package wire_test

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// four returns what a search of 4 shards on one node asks and is answered.
func four(dims int) (*wire.Request, *wire.Answer) {
	query := wire.QueryOf(db.Query{Code: []byte("01234567"), K: 10, Include: db.IncludeCursor})
	if dims > 0 {
		query = wire.QueryOf(db.Query{From: "image", Vector: make([]float32, dims), K: 10,
			Include: db.IncludeCursor})
	}
	var requests []*wire.Request
	a := &wire.Answer{}
	for shard := range 4 {
		requests = append(requests, &wire.Request{Verb: wire.Search, Shard: shard, From: 12345, Wait: 1000,
			Collection: "codes", Query: query})
		r := &db.Result{Space: 1, Revision: 1, Rerank: db.RerankProjection}
		for i := range 10 {
			r.Hits = append(r.Hits, db.Hit{Key: fmt.Sprint("key-", i), Row: uint32(i) << 12, Distance: i,
				Cursor: base64.RawURLEncoding.EncodeToString(make([]byte, 45))})
		}
		a.Answers = append(a.Answers, &wire.Answer{Applied: 12345, Result: wire.ResultOf(r)})
	}
	return wire.SeveralOf(requests), a
}

// Everything that a search of 4 shards has encoded and decoded on its way.
func BenchmarkSearchTravels(b *testing.B) {
	for _, dims := range []int{0, 512} {
		b.Run(fmt.Sprint("dims=", dims), func(b *testing.B) {
			q, a := four(dims)
			b.ReportAllocs()
			for b.Loop() {
				asked, err := q.Encode()
				if err != nil {
					b.Fatal(err)
				}
				if _, err := wire.DecodeRequest(asked); err != nil {
					b.Fatal(err)
				}
				answered, err := a.Encode()
				if err != nil {
					b.Fatal(err)
				}
				if _, err := wire.DecodeAnswer(answered); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(asked)), "asked-bytes")
				b.ReportMetric(float64(len(answered)), "answered-bytes")
			}
		})
	}
}
