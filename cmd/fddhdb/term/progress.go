package term

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Progress shows the progress of a long verb, on one line of a terminal that is erased
// at the end. A nil *Progress shows nothing.
type Progress struct {
	paging *atomic.Bool // while set nothing is shown, as a pager has the terminal; nil: no pager
	out    io.Writer
	bar    *progressbar.ProgressBar
	stage  string
}

// NewProgress returns a Progress, or nil if stderr is no terminal: a log should have no
// bars.
func (p *Printer) NewProgress() *Progress {
	f := File(p.remarks)
	if f == nil {
		return nil
	}
	bar := NewProgress(f)
	bar.paging = &p.Paging
	return bar
}

// NewProgress returns a Progress on any writer.
func NewProgress(out io.Writer) *Progress { return &Progress{out: out} }

// Report shows that done of total steps of a stage are done, how many a second, and how
// long the rest will take. A total of 0 means unknown. It is cheap enough to call for every item.
func (p *Progress) Report(stage string, done, total int64) { p.show(stage, done, total, false) }

// Bytes is Report for bytes.
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
			progressbar.OptionSetDescription(Plain(stage)),
			progressbar.OptionThrottle(100 * time.Millisecond),
			progressbar.OptionSetWidth(30),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionClearOnFinish(),
		}
		if done > 0 || total > 0 {
			options = append(options, progressbar.OptionShowCount(), progressbar.OptionShowBytes(bytes))
			if !bytes { // of bytes it shows the rate by itself
				options = append(options, progressbar.OptionShowIts(), progressbar.OptionSetItsString(""))
			}
		}
		p.bar = progressbar.NewOptions64(most, options...)
	}
	// A lost terminal is no reason to fail.
	_ = p.bar.Set64(done)
}

// End erases the line.
func (p *Progress) End() {
	if p == nil || p.bar == nil {
		return
	}
	_ = p.bar.Finish()
	_ = p.bar.Clear()
	p.bar = nil
}
