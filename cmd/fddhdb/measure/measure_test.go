package measure

import (
	"testing"
	"time"
)

// The figures are those of the times: the median is the 50th of 100, the 99th hundredth
// the 99th.
func TestBenchFigures(t *testing.T) {
	l := &line{Op: Op{"radius", 8}, tier: "auto", hits: 250}
	for i := range 100 {
		l.times = append(l.times, time.Duration(100-i)*time.Microsecond)
	}
	if j := l.json(false); j.P50 != 50 || j.P99 != 99 || j.Mean != 50.5 || j.AvgHits != 2.5 || j.K != nil || *j.Radius != 8 || j.Checked != nil {
		t.Errorf("%+v", j)
	}
	l.times = l.times[99:]
	if j := l.json(false); j.P50 != 1 || j.P99 != 1 || j.Mean != 1 {
		t.Errorf("%+v", j)
	}
	if j := (&line{}).json(true); j.P50 != 0 || *j.Checked != 0 {
		t.Errorf("%+v", j)
	}
}
