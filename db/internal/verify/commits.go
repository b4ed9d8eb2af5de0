package verify

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
)

// The side file stands beside the store, and must not promise more commits than that has.

// beside compares the side file, in dir, with the store. side and err are what reading it gave before the
// snapshot was taken.
func (v *verifier) beside(fsys vfs.FS, dir string, side store.Commits, err error) {
	i, bad := record.ReadIdentity(v.snap, dir)
	if bad != nil {
		return // database has said so
	}
	found := func(format string, args ...any) {
		v.found(report.Finding{Record: store.SideFile, Problem: fmt.Sprintf(format, args...)}, nil)
	}
	// Commits that came after the side file was read are no finding: the store may be ahead of it,
	// but not behind.
	told, _ := store.CompareCommits(&i, side, err, spaces.Now())
	if told.Problem != "" {
		found("%s; whether commits are missing is not known", told.Problem)
	}
	for _, l := range told.Losses {
		found("%s", l)
	}
}
