package db

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/internal/record"
)

// sideFile names the side file in a Finding.
const sideFile = "side file " + commitsName

// beside compares the marker and the side file with the store.
func (v *verifier) beside(fsys vfs.FS, dir string, side commitsRecord, err error) {
	i, bad := record.ReadIdentity(v.snap, dir)
	if bad != nil {
		return // database has said so
	}
	if format, err := readMarker(fsys, dir); err == nil && format > i.Format {
		v.found(aheadOfStore(format, i.Format), nil)
	}
	if i.Format < record.FormatIdentity {
		return
	}
	found := func(format string, args ...any) {
		v.found(Finding{Record: sideFile, Problem: fmt.Sprintf(format, args...)}, nil)
	}
	told, _ := compareCommits(&i, side, err, now())
	if told.problem != "" {
		found("%s; whether commits are missing is not known", told.problem)
	}
	for _, l := range told.losses {
		found("%s", l)
	}
}

// aheadOfStore is the finding that the marker names a later format than the store.
func aheadOfStore(marker, stored int) Finding {
	return Finding{Record: "marker " + MarkerName, Problem: fmt.Sprintf("it %s; which commits are missing is not known", olderStore(marker, stored))}
}
