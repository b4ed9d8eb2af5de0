package metamorphic

import (
	"os"
	"testing"

	"github.com/fddhdb/fddhdb/internal/cells"
)

// Histories have some tens of items, and meet indexes of vectors as if there were many.
func TestMain(m *testing.M) {
	cells.ExactCost, cells.FoldAfter, cells.LeastMeasured, cells.LeastSplit = 0, 6, 8, 4
	os.Exit(m.Run())
}
