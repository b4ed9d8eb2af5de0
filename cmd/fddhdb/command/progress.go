package command

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/event"
)

// progress shows how far a long verb is, on one line of a terminal, which is gone
// when the verb is done. A nil *progress shows nothing.
type progress struct {
	paging *atomic.Bool // it has the terminal
	out    io.Writer
	bar    *progressbar.ProgressBar
	phase  string
}

// newProgress returns nil where stderr is no terminal: a log wants no bars.
func (e *env) newProgress() *progress {
	f := terminal(e.stderr)
	if f == nil {
		return nil
	}
	return &progress{paging: &e.paging, out: f}
}

// report shows that done of total steps of a phase are done; a total of 0 means
// that nobody knows. It is cheap enough to be called for every item.
func (p *progress) report(phase string, done, total int) {
	p.show(phase, int64(done), int64(total), false)
}

// bytes is report for bytes.
func (p *progress) bytes(phase string, done, total int64) {
	p.show(phase, done, total, true)
}

// followEvery is how often follow looks.
const followEvery = 200 * time.Millisecond

// follow runs f, and shows meanwhile what the database says of how far the operation is, in
// bytes.
func (p *progress) follow(d *db.DB, op event.Op, f func() error) error {
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
				p.running(op, stats.Activity.Running)
			}
		}
	}
}

// running shows how far an operation is.
func (p *progress) running(op event.Op, all []event.RunningOperation) {
	for _, o := range all {
		if o.Op == op {
			p.bytes(o.Stage, o.Done, o.Total)
		}
	}
}

func (p *progress) show(phase string, done, total int64, bytes bool) {
	if p == nil || p.paging != nil && p.paging.Load() {
		return
	}
	if p.bar == nil || p.phase != phase {
		p.end()
		most := total
		if total == 0 {
			most = -1 // a spinner that turns by itself
		}
		p.phase = phase
		options := []progressbar.Option{
			progressbar.OptionSetWriter(p.out),
			progressbar.OptionSetDescription(phase),
			progressbar.OptionThrottle(100 * time.Millisecond),
			progressbar.OptionSetWidth(30),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionClearOnFinish(),
		}
		if done > 0 || total > 0 {
			options = append(options, progressbar.OptionShowCount(), progressbar.OptionShowBytes(bytes))
		}
		if !bytes && total > 0 {
			options = append(options, progressbar.OptionShowIts())
		}
		p.bar = progressbar.NewOptions64(most, options...)
	}
	// A terminal that has gone away is no reason to fail.
	_ = p.bar.Set64(done)
}

// end takes the line off the terminal.
func (p *progress) end() {
	if p == nil || p.bar == nil {
		return
	}
	_ = p.bar.Finish()
	_ = p.bar.Clear()
	p.bar = nil
}
