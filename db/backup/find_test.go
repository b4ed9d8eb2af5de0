package backup

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// The error for a missing backup says how many there are, and why none of them matches.
func TestWhatIsNotFound(t *testing.T) {
	timed(t, func(t *testing.T) {
		s := newMemStore()
		if _, err := Find(t.Context(), s, Choice{}); !errors.Is(err, ErrNotFound) &&
			!errors.Is(err, ErrNotRepository) {
			t.Error(err)
		}
		first := mustCreate(t, s, Manifest{}, map[string][]byte{"a": {1}})
		mustCreate(t, s, Manifest{}, map[string][]byte{"a": {2}})
		for _, c := range []struct {
			Choice
			says string
		}{
			{Choice{ID: "1999"}, "none of the 2 in the repository has an id that begins with 1999"},
			{Choice{Database: "ff"}, "none of the 2 in the repository is of the database ff"},
			{Choice{Before: first.Time.Add(-time.Hour)}, "none of the 2 in the repository began by "},
			{Choice{Database: "ff", Before: first.Time}, "is of the database ff and began by "},
		} {
			if _, err := Find(t.Context(), s, c.Choice); !errors.Is(err, ErrNotFound) ||
				!strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v: %v, want %q", c.Choice, err, c.says)
			}
		}
	})
}
