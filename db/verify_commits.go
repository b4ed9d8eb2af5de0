package db

import "fmt"

// commits compares the side file with the store.
func (v *verifier) commits(dir string, side commitsRecord, err error) {
	i, bad := readIdentity(v.snap, dir)
	if bad != nil || i.format < FormatIdentity {
		return // database has said so
	}
	r, _ := i.compare(side, err)
	found := func(format string, args ...any) {
		v.found(Finding{Record: "side file " + commitsName, Problem: fmt.Sprintf(format, args...)}, nil)
	}
	if r.Problem != "" {
		found("%s; whether commits are missing is not known", r.Problem)
	}
	for _, l := range r.Losses {
		found("%s", l)
	}
}
