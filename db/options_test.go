package db_test

import (
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

// Databases that share caches have no more together than one, but for what each needs at least.
func TestShareCaches(t *testing.T) {
	for _, n := range []int{-1, 0, 1} {
		if got := db.ShareCaches(db.Options{KeyCacheBytes: 7}, n); got.KeyCacheBytes != 7 || got.CacheBytes != 0 {
			t.Errorf("%d databases: %+v", n, got)
		}
	}
	got := db.ShareCaches(db.Options{IndexCacheBytes: 100 << 20, RerankCacheBytes: -1, KeyCacheBytes: 1 << 10}, 4)
	if got.CacheBytes != 16<<20 || got.IndexCacheBytes != 25<<20 || got.RerankCacheBytes != -1 || got.KeyCacheBytes != 1<<10 {
		t.Errorf("%+v", got)
	}
	if got := db.ShareCaches(db.Options{}, 1000); got.CacheBytes != 8<<20 || got.IndexCacheBytes != 16<<20 || got.RerankCacheBytes != 8<<20 || got.KeyCacheBytes != 4<<20 {
		t.Errorf("%+v", got)
	}
}
