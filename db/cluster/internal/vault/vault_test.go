package vault

import (
	"errors"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

// The shards of a generation are all of one cluster: what another one has left under the same numbers is none
// of them.
func TestGeneration(t *testing.T) {
	v := At(t.TempDir())
	put := func(cluster string, shard, first, shards int) {
		t.Helper()
		if err := v.Put(t.Context(), Entry{Cluster: cluster, Shard: shard, First: first, Shards: shards,
			Backup: "b"}); err != nil {
			t.Fatal(err)
		}
	}
	is := func(first, shards int) {
		t.Helper()
		if f, n, err := v.Generation(t.Context(), 100); err != nil || f != first || n != shards {
			t.Errorf("%d shards from %d on, want %d from %d on: %v", n, f, shards, first, err)
		}
	}
	put("a", 0, 0, 2)
	put("a", 1, 0, 2)
	is(0, 2)
	for shard := 2; shard < 6; shard++ {
		put("b", shard, 2, 4)
	}
	is(0, 2)
	put("a", 2, 2, 4)
	is(0, 2)
	if err := v.Vacant(t.Context(), "a", []int{0, 2, 9}); err != nil {
		t.Error(err)
	}
	if err := v.Vacant(t.Context(), "a", []int{2, 3}); !errors.Is(err, db.ErrExists) {
		t.Error(err)
	}
	for shard := 3; shard < 6; shard++ {
		put("a", shard, 2, 4)
	}
	is(2, 4)
	put("b", 1, 0, 2)
	is(2, 4)
	put("b", 4, 2, 4)
	if _, _, err := v.Generation(t.Context(), 100); !errors.Is(err, db.ErrNotFound) {
		t.Error(err)
	}
}
