package db

import (
	"testing"
)

// findings verifies a database.
func findings(t testing.TB, d *DB, opt VerifyOptions) ([]Finding, *Verification) {
	t.Helper()
	var all []Finding
	v, err := d.Verify(ctx, opt, func(f Finding) error {
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

// checkSound fails where anything is found.
func checkSound(t testing.TB, d *DB, when string) *Verification {
	t.Helper()
	all, _ := findings(t, d, VerifyOptions{})
	deep, v := findings(t, d, VerifyOptions{Deep: true})
	for i, f := range append(all, deep...) {
		if i > 10 {
			break
		}
		t.Errorf("%s: %v (%s)", when, f, f.Key)
	}
	return v
}
