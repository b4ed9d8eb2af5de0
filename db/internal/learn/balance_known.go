package learn

import (
	"time"
	"weak"

	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
)

// Monitoring may call Stats every second, and measuring the balance of many codes takes longer than
// the rest of Stats. So the last measurement is kept with the space, and counts for a while.

const (
	balancedAtOnce  = 1000 // up to so many distinct codes are measured at each call, in microseconds
	balancePatience = 1000 // a measurement counts for so many times as long as it took
)

// PresentBalance returns the balance of the codes in the space of cv, for Stats; nil as
// BalanceIn. Of more than balancedAtOnce codes it returns the last measurement, as long as
// that counts or the codes have not changed. So measuring takes at most a thousandth of the
// time, however often Stats is called. One goroutine measures; others get the last measurement
// meanwhile, and wait only for the first (knownBalance.Measuring). The result belongs to the
// caller.
func PresentBalance(cv *state.CollectionView) *report.Balance {
	if cv.Space == nil || cv.Codes.Table == nil {
		return nil
	}
	if cv.Codes.Codes <= balancedAtOnce {
		return BalanceIn(cv, maxBalanced)
	}
	known := cv.Balances
	// A weak pointer to the table tells whether codes have changed, and keeps it not alive.
	isOf := func(b *state.MeasuredBalance) bool {
		return b != nil && (time.Now().Before(b.Until) || b.Table.Value() == cv.Codes.Table)
	}
	last := known.Last.Load()
	if isOf(last) {
		return copyOf(last.Balance)
	}
	// There is nothing to answer with before the first measurement, so that one is waited for.
	if last == nil {
		known.Measuring.Lock()
	} else if !known.Measuring.TryLock() { // another goroutine measures
		return copyOf(last.Balance)
	}
	defer known.Measuring.Unlock()
	// Another goroutine may have measured while this one waited for the lock.
	if last = known.Last.Load(); isOf(last) {
		return copyOf(last.Balance)
	}
	start := time.Now()
	b := &state.MeasuredBalance{Balance: BalanceIn(cv, maxBalanced), Table: weak.Make(cv.Codes.Table)}
	b.Until = time.Now().Add(balancePatience * time.Since(start))
	known.Last.Store(b)
	return copyOf(b.Balance)
}

// copyOf returns a copy of a balance, nil of nil.
func copyOf(b *report.Balance) *report.Balance {
	if b == nil {
		return nil
	}
	own := *b
	return &own
}
