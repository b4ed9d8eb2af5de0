package term

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Progress shows how far a long verb is, on one line of a terminal, which is gone
// when the verb is done. A nil *progress shows nothing.
type Progress struct {
	paging *atomic.Bool // it has the terminal
	out    io.Writer
	bar    *progressbar.ProgressBar
	stage  string
}

// NewProgress returns nil where stderr is no terminal: a log wants no bars.
func (p *Printer) NewProgress() *Progress {
	f := File(p.Stderr)
	if f == nil {
		return nil
	}
	bar := NewProgress(f)
	bar.paging = &p.Paging
	return bar
}

// NewProgress shows progress on a writer, whatever that is.
func NewProgress(out io.Writer) *Progress { return &Progress{out: out} }

// Report shows that done of total steps of a stage are done; a total of 0 means
// that nobody knows. It is cheap enough to be called for every item.
func (p *Progress) Report(stage string, done, total int64) { p.show(stage, done, total, false) }

// Bytes is report for bytes.
func (p *Progress) Bytes(stage string, done, total int64) { p.show(stage, done, total, true) }

func (p *Progress) show(stage string, done, total int64, bytes bool) {
	if p == nil || p.paging != nil && p.paging.Load() {
		return
	}
	if p.bar == nil || p.stage != stage {
		p.End()
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

// End takes the line off the terminal.
func (p *Progress) End() {
	if p == nil || p.bar == nil {
		return
	}
	_ = p.bar.Finish()
	_ = p.bar.Clear()
	p.bar = nil
}
