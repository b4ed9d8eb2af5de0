package merge_test

import (
	"fmt"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/merge"
)

// Two shards are asked for two hits a page.
func Example() {
	shards := [][]db.Hit{
		{{Key: "cat", Distance: 0, Cursor: "1"}, {Key: "car", Distance: 3, Cursor: "2"}},
		{{Key: "kitten", Distance: 1, Cursor: "1"}, {Key: "tiger", Distance: 2, Cursor: "2"},
			{Key: "truck", Distance: 5, Cursor: "3"}},
	}
	ask := func(shard int, after string) *db.Result { // as db.Collection.Search answers
		r := &db.Result{Space: 1, Rerank: db.RerankNone, Hits: shards[shard]}
		for after != "" && r.Hits[0].Cursor <= after {
			r.Hits = r.Hits[1:]
		}
		if len(r.Hits) > 2 {
			r.Hits, r.Next = r.Hits[:2], r.Hits[1].Cursor
		}
		return r
	}
	for at := (merge.Cursor{}); !at.Done(); {
		answers := make([]*db.Result, len(shards))
		for i := range answers {
			if !at.Ended(i) {
				answers[i] = ask(i, at.After(i))
			}
		}
		page, next, err := merge.Page(answers, at, merge.Want{K: 2})
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, h := range page.Hits {
			fmt.Println(h.Key)
		}
		fmt.Println("--")
		at = next
	}
	// Output:
	// cat
	// kitten
	// --
	// tiger
	// car
	// --
	// truck
	// --
}
