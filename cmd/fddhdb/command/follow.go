package command

import (
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/event"
)

// followEvery is the interval in which follow reads the progress.
const followEvery = 200 * time.Millisecond

// follow runs f, and meanwhile shows the progress that the database reports for op, in
// bytes.
func follow(p *term.Progress, d *db.DB, op event.Op, f func() error) error {
	if p == nil {
		return f()
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-ticker.C:
			if stats, err := d.Stats(); err == nil {
				showRunning(p, op, stats.Activity.Running)
			}
		}
	}
}

// showRunning shows the progress of an operation.
func showRunning(p *term.Progress, op event.Op, all []event.RunningOperation) {
	for _, o := range all {
		if o.Op == op {
			p.Bytes(o.Stage, o.Done, o.Total)
		}
	}
}
