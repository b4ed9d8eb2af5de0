package dbkit

import (
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

// Findings verifies a database.
func Findings(t testing.TB, d *db.DB, opt db.VerifyOptions) ([]db.Finding, *db.Verification) {
	t.Helper()
	var all []db.Finding
	v, err := d.Verify(ctx, opt, func(f db.Finding) error {
		all = append(all, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if v.Findings != len(all) {
		t.Errorf("%d findings were reported, %d counted", len(all), v.Findings)
	}
	return all, v
}

// CheckSound fails where verification finds anything, by either way.
func CheckSound(t testing.TB, d *db.DB, when string) *db.Verification {
	t.Helper()
	all, _ := Findings(t, d, db.VerifyOptions{})
	deep, v := Findings(t, d, db.VerifyOptions{Deep: true})
	for i, f := range append(all, deep...) {
		if i > 10 {
			break
		}
		t.Errorf("%s: %v (%s)", when, f, f.Key)
	}
	return v
}
