package storetest_test

import (
	"testing"

	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/backup/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) backup.Store { return new(storetest.Memory) })
}
