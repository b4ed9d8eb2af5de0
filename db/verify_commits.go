package db

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// sideFile names the side file in a Finding.
const sideFile = "side file " + commitsName

// beside compares the marker and the side file with the store.
func (v *verifier) beside(fsys vfs.FS, dir string, side commitsRecord, err error) {
	i, bad := readIdentity(v.snap, dir)
	if bad != nil {
		return // database has said so
	}
	if format, err := readMarker(fsys, dir); err == nil && format > i.format {
		v.found(aheadOfStore(format, i.format), nil)
	}
	if i.format < FormatIdentity {
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
