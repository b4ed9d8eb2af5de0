package command

import (
	"testing"
	"time"
)

func TestTimeValue(t *testing.T) {
	for s, want := range map[string]time.Time{
		"2026-03-01":                time.Date(2026, 3, 1, 0, 0, 0, 0, time.Local),
		"2026-03-01 12:30":          time.Date(2026, 3, 1, 12, 30, 0, 0, time.Local),
		"2026-03-01T12:30:05":       time.Date(2026, 3, 1, 12, 30, 5, 0, time.Local),
		"2026-03-01T12:30:05Z":      time.Date(2026, 3, 1, 12, 30, 5, 0, time.UTC),
		"2026-03-01T12:30:05+02:00": time.Date(2026, 3, 1, 10, 30, 5, 0, time.UTC),
	} {
		var got time.Time
		if err := (*timeValue)(&got).Set(s); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "yesterday", "2026-13-01", "12:30"} {
		var got time.Time
		if err := (*timeValue)(&got).Set(s); err == nil {
			t.Errorf("%q: %v", s, got)
		}
	}
}
