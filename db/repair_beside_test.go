package db_test

import (
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// What stands beside a sound store is mended, too: a repair names the commits that are
// known to be missing, once, and then nothing is wrong any more.
func TestRepairOfWhatStandsBesideTheStore(t *testing.T) {
	whole := smallPatient(t)
	whole.repair(db.RepairOptions{}) // else the store is damaged, too
	whole.before = whole.sound("repaired", nil)
	side := func(p *patient) store.Commits {
		r := need(store.ReadCommits(p.fs, p.dir))(t)
		return r
	}
	for _, c := range []struct {
		what   string
		damage func(p *patient)
		says   []string // a finding each
	}{
		{"nothing", func(*patient) {}, nil},
		{"commits are missing", func(p *patient) {
			r := side(p)
			r.Sequence += 3
			r.Losses = []db.Loss{{Found: spaces.Now(), First: 2, Last: 5}}
			must(t, store.MakeCommits(p.fs, p.dir, r))
		}, []string{"commits 2 to 5", "the latest, are missing"}},
		{"no side file", func(p *patient) {
			must(t, p.fs.Remove(p.fs.PathJoin(p.dir, store.CommitsName)))
		}, []string{"missing; whether"}},
		{"that of another database", func(p *patient) {
			must(t, store.MakeCommits(p.fs, p.dir, store.Commits{UUID: record.NewUUID(), Sequence: 1}))
		}, []string{"of another database"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := whole.another()
			p.t = t
			c.damage(p)
			check := func(who string, found []db.Finding) {
				t.Helper()
				if len(found) != len(c.says) {
					t.Fatalf("%s: %v, want %q", who, found, c.says)
				}
				for i, says := range c.says {
					if !strings.Contains(found[i].String(), says) {
						t.Errorf("%s: %v, want %q", who, found[i], says)
					}
				}
			}
			var seen []db.Finding
			find := func(f db.Finding) error { seen = append(seen, f); return nil }
			need(db.VerifyFolder(ctx, p.dir, p.options(), db.VerifyOptions{}, find))(t)
			// What Verify tells of one run of commits, or of several.
			if (len(seen) > 0) != (len(c.says) > 0) {
				t.Errorf("Verify: %v", seen)
			}
			dry, r := p.repair(db.RepairOptions{DryRun: true})
			check("a trial", dry)
			lost, r2 := p.repair(db.RepairOptions{})
			check("the repair", lost)
			if want := len(c.says) > 0; r.Damaged != want || r2.Damaged != want || r2.DamagedDir != "" || r2.Items != r.Items {
				t.Errorf("%+v, %+v", r, r2)
			}
			seen = nil
			if _, err := db.VerifyFolder(ctx, p.dir, p.options(), db.VerifyOptions{}, find); err != nil || len(seen) > 0 {
				t.Errorf("after the repair: %v, %v", seen, err)
			}
			if again, r := p.repair(db.RepairOptions{}); len(again) > 0 || r.Damaged {
				t.Errorf("repaired again: %v, %+v", again, r)
			}
			p.sound(c.what, nil)
		})
	}
}

// A store that is replaced says of earlier losses, too, what will not be known any more.
func TestRepairTellsOfEarlierLosses(t *testing.T) {
	p := smallPatient(t)
	r := need(store.ReadCommits(p.fs, p.dir))(t)
	r.Losses = []db.Loss{{Found: spaces.Now(), First: 2, Last: 5}}
	must(t, store.MakeCommits(p.fs, p.dir, r))
	lost, done := p.repair(db.RepairOptions{})
	if len(lost) != 1 || !strings.Contains(lost[0].Problem, "commits 2 to 5") || done.DamagedDir == "" {
		t.Errorf("%v, %+v", lost, done)
	}
	p.sound("repaired", nil)
}
