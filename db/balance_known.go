package db

import (
	"slices"
	"time"
	"weak"

	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/mih"
)

const (
	balancedAtOnce  = 1000 // codes are looked at each time: it takes some microseconds
	balancePatience = 1000 // times as long as it took, it is what is known
)

// presentBalance is balance, or of many codes what it was a moment ago.
func presentBalance(cv *collectionView) *report.Balance {
	codes := 0
	for i := range cv.sets {
		if cv.sets[i].table == nil {
			return nil
		}
		codes += cv.sets[i].codes
	}
	if codes <= balancedAtOnce {
		return balanceIn(cv, maxBalanced)
	}
	known := cv.balances
	isOf := func(b *measuredBalance) bool {
		return b != nil && (time.Now().Before(b.until) || slices.EqualFunc(b.tables, cv.sets, func(t weak.Pointer[mih.Table], set codeSetView) bool {
			return t.Value() == set.table
		}))
	}
	last := known.last.Load()
	if isOf(last) {
		return copyOf(last.balance)
	}
	if last == nil {
		known.measuring.Lock()
	} else if !known.measuring.TryLock() { // somebody is at it
		return copyOf(last.balance)
	}
	defer known.measuring.Unlock()
	if last = known.last.Load(); isOf(last) {
		return copyOf(last.balance)
	}
	start := time.Now()
	b := &measuredBalance{balance: balanceIn(cv, maxBalanced)}
	for i := range cv.sets {
		b.tables = append(b.tables, weak.Make(cv.sets[i].table))
	}
	b.until = time.Now().Add(balancePatience * time.Since(start))
	known.last.Store(b)
	return copyOf(b.balance)
}

// copyOf returns a balance for a caller to keep.
func copyOf(b *report.Balance) *report.Balance {
	if b == nil {
		return nil
	}
	own := *b
	return &own
}
