package db

import (
	"context"
	"testing"
)

var ctx = context.Background()

// putAll puts items into a collection, in one commit.
func putAll(t testing.TB, c *Collection, items []*Item) {
	t.Helper()
	putAllIn(t, Of(c), c, items)
}
