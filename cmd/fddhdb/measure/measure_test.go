package measure

import (
	"testing"
	"time"
)

// Figures are computed from the times: the median of 100 is the 50th, the 99th
// percentile the 99th.
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
