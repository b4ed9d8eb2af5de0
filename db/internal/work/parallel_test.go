package work

import (
	"context"
	"strings"
	"testing"
)

// A panic in any of the goroutines is an error, and ends the others.
func TestParallelReturnsPanics(t *testing.T) {
	for _, bad := range []int{0, 7, 99} {
		err := ParallelBy(context.Background(), 4, 1, 100, func(i int) error {
			if i == bad {
				panic("no such luck")
			}
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "no such luck") {
			t.Errorf("%d: %v", bad, err)
		}
	}
}
