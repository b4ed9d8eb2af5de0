package db

import (
	"testing"

	"go.uber.org/goleak"
)

// No test may leave a goroutine behind: a closed database has none.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
