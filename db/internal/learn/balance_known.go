package learn

import (
	"slices"
	"time"
	"weak"

	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/mih"
)

const (
	balancedAtOnce  = 1000 // codes are looked at each time: it takes some microseconds
	balancePatience = 1000 // times as long as it took, it is what is known
)

// PresentBalance is balance, or of many codes what it was a moment ago.
func PresentBalance(cv *state.CollectionView) *report.Balance {
	codes := 0
	for i := range cv.Sets {
		if cv.Sets[i].Table == nil {
			return nil
		}
		codes += cv.Sets[i].Codes
	}
	if codes <= balancedAtOnce {
		return BalanceIn(cv, maxBalanced)
	}
	known := cv.Balances
	isOf := func(b *state.MeasuredBalance) bool {
		return b != nil && (time.Now().Before(b.Until) || slices.EqualFunc(b.Tables, cv.Sets, func(t weak.Pointer[mih.Table], set state.CodeSetView) bool {
			return t.Value() == set.Table
		}))
	}
	last := known.Last.Load()
	if isOf(last) {
		return copyOf(last.Balance)
	}
	if last == nil {
		known.Measuring.Lock()
	} else if !known.Measuring.TryLock() { // somebody is at it
		return copyOf(last.Balance)
	}
	defer known.Measuring.Unlock()
	if last = known.Last.Load(); isOf(last) {
		return copyOf(last.Balance)
	}
	start := time.Now()
	b := &state.MeasuredBalance{Balance: BalanceIn(cv, maxBalanced)}
	for i := range cv.Sets {
		b.Tables = append(b.Tables, weak.Make(cv.Sets[i].Table))
	}
	b.Until = time.Now().Add(balancePatience * time.Since(start))
	known.Last.Store(b)
	return copyOf(b.Balance)
}

// copyOf returns a balance for a caller to keep.
func copyOf(b *report.Balance) *report.Balance {
	if b == nil {
		return nil
	}
	own := *b
	return &own
}
