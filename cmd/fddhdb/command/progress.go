package command

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows how far a long verb is, on one line of a terminal, which is gone
// when the verb is done. A nil *progress shows nothing.
type progress struct {
	paging *atomic.Bool // it has the terminal
	out    io.Writer
	bar    *progressbar.ProgressBar
	stage  string
}

// newProgress returns nil where stderr is no terminal: a log wants no bars.
func (p *printer) newProgress() *progress {
	f := terminal(p.stderr)
	if f == nil {
		return nil
	}
	bar := newProgress(f)
	bar.paging = &p.paging
	return bar
}

// newProgress shows progress on a writer, whatever that is.
func newProgress(out io.Writer) *progress { return &progress{out: out} }

// report shows that done of total steps of a stage are done; a total of 0 means
// that nobody knows. It is cheap enough to be called for every item.
func (p *progress) report(stage string, done, total int64) { p.show(stage, done, total, false) }

// bytes is report for bytes.
func (p *progress) bytes(stage string, done, total int64) { p.show(stage, done, total, true) }

func (p *progress) show(stage string, done, total int64, bytes bool) {
	if p == nil || p.paging != nil && p.paging.Load() {
		return
	}
	if p.bar == nil || p.stage != stage {
		p.end()
		most := total
		if total == 0 {
			most = -1 // a spinner that turns by itself
		}
		p.stage = stage
		options := []progressbar.Option{
			progressbar.OptionSetWriter(p.out),
			progressbar.OptionSetDescription(stage),
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
