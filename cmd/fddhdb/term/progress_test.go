package term

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Only a terminal gets a bar, and a nil Progress can be used.
func TestProgress(t *testing.T) {
	p := NewPrinter(io.Discard, &bytes.Buffer{}).Progress()
	if p != nil {
		t.Fatal("a bar for a buffer")
	}
	p.Report("reading", 1, 2)
	p.End()

	var out bytes.Buffer
	p = NewProgress(&out)
	for i := range 100 {
		p.Report("reading", int64(i), 100)
	}
	p.Report("storing", 0, 0)
	p.End()
	p.End()
	if s := out.String(); !strings.Contains(s, "reading") || !strings.Contains(s, "storing") ||
		strings.Contains(s, "\n") || len(s) > 4000 || !strings.HasSuffix(s, " \r") {
		t.Errorf("%d bytes: %q", len(s), s)
	}
}

// A bar shows how long a stage takes, how many steps a second there are, and how long the rest takes; the
// clock goes on between steps, and the rest becomes shorter.
func TestProgressOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(&out)
		after := func(pause time.Duration) string {
			time.Sleep(pause)
			synctest.Wait()
			p.mu.Lock() // the bar may write at this very moment
			defer p.mu.Unlock()
			lines := strings.Split(strings.TrimRight(out.String(), " "), "\r")
			return strings.TrimRight(lines[len(lines)-1], " ")
		}
		expect := func(got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("shown is %q, want %q", got, want)
			}
		}
		bar := func(full int) string {
			return "[" + strings.Repeat("=", full) + strings.Repeat(" ", barWidth-full) + "]"
		}
		p.Report("reading", 400, 10_400) // an import goes on where it was
		expect(after(3*time.Second), "reading   3% "+bar(1)+" 400 of 10,400, 3s")
		expect(after(2*time.Second), "reading   3% "+bar(1)+" 400 of 10,400, 5s")
		p.Report("reading", 2400, 10_400)
		expect(after(100*time.Millisecond),
			"reading  23% "+bar(6)+" 2,400 of 10,400, 400 a second, 5s, 19s left")
		expect(after(5*time.Second), "reading  23% "+bar(6)+" 2,400 of 10,400, 400 a second, 10s, 14s left")
		expect(after(time.Minute), "reading  23% "+bar(6)+" 2,400 of 10,400, 400 a second, 1m10s")
		p.Report("reading", 10_400, 10_400)
		expect(after(100*time.Millisecond), "reading 100% "+bar(30)+" 10,400 of 10,400, 142 a second, 1m10s")
		p.Bytes("copying", 0, 0)
		expect(after(2*time.Second), "copying, 2s")
		p.Bytes("copying", 3_000_000, 0)
		expect(after(500*time.Millisecond), "copying 3.0 MB, 1.5 MB a second, 2s")
		p.Report("choose image: raw", 7, 36)
		expect(after(300*time.Millisecond), "choose image: raw  19% "+bar(5)+" 7 of 36, 0s")
		p.Report("choose image: raw", 8, 36) // the first steps say little of the rest
		expect(after(20*time.Second), "choose image: raw  22% "+bar(6)+" 8 of 36, 20s")
		p.End()
		expect(after(time.Hour), "")
	})
}

// Nothing is on the line after End, also where the bar is about to be drawn again.
func TestProgressEndsErased(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			out := &slowWriter{}
			p := NewProgress(out)
			p.Report("reading", 1, 2)
			time.Sleep(redrawn / 2)
			p.End() // erases while the bar is due
			time.Sleep(redrawn)
			if s := out.String(); !strings.HasSuffix(s, " \r") {
				t.Fatalf("left on the line: %q", s)
			}
		})
	}
}

// A slowWriter takes time for a line of blanks.
type slowWriter struct{ bytes.Buffer }

func (w *slowWriter) Write(b []byte) (int, error) {
	if len(bytes.TrimSpace(b)) == 0 {
		time.Sleep(redrawn / 2)
	}
	return w.Buffer.Write(b)
}
