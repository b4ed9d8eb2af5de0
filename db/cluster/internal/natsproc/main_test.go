package natsproc_test

import (
	"os"
	"testing"

	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
)

func TestMain(m *testing.M) {
	natsproc.Main()
	os.Exit(m.Run())
}
