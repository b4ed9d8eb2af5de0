package shard_test

import (
	"fmt"
	"testing"

	"github.com/fddhdb/fddhdb/db/shard"
)

// Where items are is stored in what has been built: it must not change. The two hashes are those that the
// authors of XXH64 publish.
func TestOf(t *testing.T) {
	if shard.Of("", 1_000_000) != 0xef46db3751d8e999%1_000_000 ||
		shard.Of("a", 1_000_000) != 0xd24ec4f1a98c6e5b%1_000_000 {
		t.Error("it is not XXH64")
	}
}

// Each shard is split in two where there are twice as many, and all get about as many items.
func TestTwiceAsManySplitEachInTwo(t *testing.T) {
	const shards, n = 6, 60_000
	var counts [2 * shards]int
	for i := range n {
		key := fmt.Sprint("key ", i)
		was, is := shard.Of(key, shards), shard.Of(key, 2*shards)
		if is != was && is != was+shards {
			t.Fatalf("%q goes from shard %d of %d to %d", key, was, shards, is)
		}
		counts[is]++
	}
	for i, c := range counts {
		if c < n/len(counts)*9/10 || c > n/len(counts)*11/10 {
			t.Errorf("shard %d has %d of %d", i, c, n)
		}
	}
}
