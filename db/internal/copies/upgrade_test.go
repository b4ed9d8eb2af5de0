package copies

import (
	"testing"

	"github.com/fddhdb/fddhdb/db/internal/record"
)

// The migrations lead from the oldest format to the newest, one by one.
func TestMigrationsAreComplete(t *testing.T) {
	if len(migrations) != record.NewestFormat-record.MinFormat {
		t.Fatalf("%d migrations from format %d to %d", len(migrations), record.MinFormat, record.NewestFormat)
	}
	for i, m := range migrations {
		if m.To != record.MinFormat+i+1 || m.What == "" || m.run == nil {
			t.Errorf("migration %d leads to format %d: %q", i, m.To, m.What)
		}
	}
}
