package work

import (
	"context"
	"time"
)

// SleepUntil waits until t, or until the context ends; then it returns the error of the
// context.
func SleepUntil(ctx context.Context, t time.Time) error {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
