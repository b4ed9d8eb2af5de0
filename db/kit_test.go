package db_test

import (
	"context"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/learn"
)

var ctx = context.Background()

// putAll puts items into a collection, in one commit.
func putAll(t testing.TB, c *db.Collection, items []*db.Item) {
	t.Helper()
	dbkit.PutAll(t, db.Of(c), c, items)
}

// taught returns the collection as those see it who let it learn.
func taught(c *db.Collection) learn.Collection { return db.Learning(db.Of(c)).Of(db.Inside(c)) }
