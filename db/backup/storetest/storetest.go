package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db/backup"
)

// Run tests the stores that open returns; each must be empty. open gets the t of a
// subtest. With -short Run leaves out large objects and makes fewer small ones.
func Run(t *testing.T, open func(t *testing.T) backup.Store) {
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			// A store that hangs must not keep other tests from running.
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			if err := c.run(ctx, open(t), scaleOf(testing.Short())); err != nil {
				t.Error(err)
			}
		})
	}
}

// A check tests one promise of the interface on an empty store.
type check struct {
	name string
	run  func(ctx context.Context, s backup.Store, n scale) error
}

func checks() []check {
	return []check{
		{"Bytes", checkBytes},
		{"FromWhereTheReaderStands", checkPosition},
		{"Names", checkNames},
		{"Replace", checkReplace},
		{"Missing", checkMissing},
		{"Delete", checkDelete},
		{"Prefixes", checkPrefixes},
		{"ErrorOfTheCallback", checkCallback},
		{"Modified", checkModified},
		{"Many", checkMany},
		{"ListWhileOthersWrite", checkListWhileWriting},
		{"Large", checkLarge},
		{"WrongSize", checkWrongSize},
		{"FailingReader", checkFailingReader},
		{"Cancelled", checkCancelled},
		{"CancelledHalfway", checkCancelledHalfway},
		{"Atomic", checkAtomic},
		{"ReplacedWhileRead", checkReplacedWhileRead},
		{"Concurrent", checkConcurrent},
	}
}

// scale is the amount of work of a check.
type scale struct {
	objects int   // in a store that has many
	large   int64 // bytes of an object that stores may cut into parts
	parts   int64 // bytes of one that stores may cut into parts
	rounds  int   // repetitions of concurrent work
}

// scaleOf has more objects than a page of S3 lists, and objects that are uploaded in
// several parts.
func scaleOf(short bool) scale {
	if short {
		return scale{objects: 60, large: 1<<20 + 3, parts: 1<<20 + 1, rounds: 10}
	}
	return scale{objects: 1100, large: 64<<20 + 3, parts: 17<<20 + 1, rounds: 30}
}
