package term

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// Progress shows the progress of a long verb, on one line of a terminal that is erased
// at the end. A nil *Progress shows nothing. A goroutine writes the line again while there
// is one, so that its clock goes on between steps. Safe for concurrent use.
type Progress struct {
	out io.Writer

	mu    sync.Mutex // guards the fields below, and writing; held alone
	stage string
	bytes bool // done and total are bytes
	shown int  // width of what is on the line

	began, last  time.Time // when the stage began, and when done was last told to have grown
	first, done  int64     // what was done then
	total        int64     // 0: unknown
	stop, ending chan struct{}
}

const (
	redrawn     = 100 * time.Millisecond // between two looks at what has changed
	leastWorked = time.Second            // before a rate is shown: the first steps say little
	barWidth    = 30
)

// NewProgress returns a Progress on any writer.
func NewProgress(out io.Writer) *Progress { return &Progress{out: out} }

// Report shows that done of total steps of a stage are done, how many a second, and how
// long the rest will take. A total of 0 means unknown. It is cheap enough to call for every item.
func (p *Progress) Report(stage string, done, total int64) { p.show(stage, done, total, false) }

// Bytes is Report for bytes.
func (p *Progress) Bytes(stage string, done, total int64) { p.show(stage, done, total, true) }

func (p *Progress) show(stage string, done, total int64, bytes bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop == nil {
		p.stop, p.ending = make(chan struct{}), make(chan struct{})
		go p.redraw(p.stop, p.ending)
	} else if p.stage == stage {
		if p.total = total; done > p.done {
			p.done, p.last = done, time.Now()
		}
		return
	}
	now := time.Now()
	p.stage, p.bytes, p.began, p.last, p.first, p.done, p.total = stage, bytes, now, now, done, done, total
	p.draw()
}

// redraw writes the line again and again until it is told to stop.
func (p *Progress) redraw(stop <-chan struct{}, ending chan<- struct{}) {
	defer close(ending)
	tick := time.NewTicker(redrawn)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			p.mu.Lock()
			p.draw()
			p.mu.Unlock()
		}
	}
}

// draw writes the line. The caller has mu. A lost terminal is no reason to fail.
func (p *Progress) draw() {
	line := p.line(time.Now())
	if f := File(p.out); f != nil {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			line = text.Trim(line, columns-1) // a line that is continued could not be erased
		}
	}
	width := displayWidth(line)
	_, _ = io.WriteString(p.out, "\r"+line+strings.Repeat(" ", max(0, p.shown-width)))
	p.shown = width
}

// line returns the line of progress as of a time. The rate is the mean of the stage up to the last reported
// step: between steps it stays, and the estimated rest becomes shorter.
func (p *Progress) line(now time.Time) string {
	count := func(n int64) string {
		if p.bytes {
			return Size(n)
		}
		return Thousands(n)
	}
	line := Plain(p.stage)
	switch {
	case p.total > 0:
		part := min(1, float64(p.done)/float64(p.total))
		full := int(part * barWidth)
		line += fmt.Sprintf(" %3d%% [%s%s] %s of %s", int(100*part), strings.Repeat("=", full),
			strings.Repeat(" ", barWidth-full), count(p.done), count(p.total))
	case p.done > 0:
		line += " " + count(p.done)
	}
	took := now.Sub(p.began).Truncate(time.Second)
	if worked := p.last.Sub(p.began); worked >= leastWorked && p.done > p.first {
		rate := float64(p.done-p.first) / worked.Seconds()
		if rate >= 1 {
			line += fmt.Sprintf(", %s a second", count(int64(rate)))
		} else {
			line += fmt.Sprintf(", %.2g a minute", 60*rate)
		}
		if p.total > p.done {
			rest := time.Duration(float64(p.total-p.done)/rate*float64(time.Second)) - now.Sub(p.last)
			if rest >= time.Second { // an estimate that has passed says nothing
				return fmt.Sprintf("%s, %v, %v left", line, took, rest.Truncate(time.Second))
			}
		}
	}
	return fmt.Sprintf("%s, %v", line, took)
}

// End erases the line.
func (p *Progress) End() {
	if p == nil {
		return
	}
	p.mu.Lock()
	stop, ending := p.stop, p.ending
	p.stop, p.ending = nil, nil
	p.mu.Unlock()
	if stop != nil { // before the line is erased, or it could be written again
		close(stop)
		<-ending
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown > 0 {
		_, _ = fmt.Fprintf(p.out, "\r%s\r", strings.Repeat(" ", p.shown))
		p.shown = 0
	}
}
