package metamorphic

import (
	"os"
	"testing"

	"github.com/fddhdb/fddhdb/internal/cells"
)

// Histories have some tens of items, and meet indexes of vectors as if there were many.
func TestMain(m *testing.M) {
	cells.ExactCost, cells.MergeAfter, cells.Slack = 0, 6, 1
	os.Exit(m.Run())
}
