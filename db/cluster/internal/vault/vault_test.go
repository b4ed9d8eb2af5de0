package vault

import (
	"errors"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

// All backups of a place are of one cluster: one that lacks some, or has those of another, is no place to
// start from.
func TestShards(t *testing.T) {
	v := At(t.TempDir())
	put := func(cluster string, shard, shards int) {
		t.Helper()
		if err := v.Put(t.Context(), Entry{Cluster: cluster, Shard: shard, Shards: shards,
			Backup: "b"}); err != nil {
			t.Fatal(err)
		}
	}
	is := func(want int) {
		t.Helper()
		n, err := v.Shards(t.Context(), 100)
		if n != want || errors.Is(err, db.ErrNotFound) != (want == 0) {
			t.Errorf("%d shards, want %d: %v", n, want, err)
		}
	}
	is(0)
	put("", 0, 0) // built
	put("", 1, 0)
	is(2)
	put("a", 0, 3)
	is(0)
	put("a", 1, 3)
	is(0)
	put("b", 2, 3)
	is(0)
	put("a", 2, 3)
	is(3)
	put("a", 3, 5)
	is(3)
}
