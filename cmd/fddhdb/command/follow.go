package command

import (
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/event"
)

// followEvery is how often follow looks.
const followEvery = 200 * time.Millisecond

// follow runs f, and shows meanwhile what the database says of how far the operation is, in
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

// showRunning shows how far an operation is.
func showRunning(p *term.Progress, op event.Op, all []event.RunningOperation) {
	for _, o := range all {
		if o.Op == op {
			p.Bytes(o.Stage, o.Done, o.Total)
		}
	}
}
