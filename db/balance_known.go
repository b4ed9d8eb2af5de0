package db

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/mih"
)

// A knownBalance is the last balance of the codes of a space, so that Stats costs little
// however often it is called. All revisions of the space have one.
type knownBalance struct {
	measuring sync.Mutex
	last      atomic.Pointer[measuredBalance]
}

// measuredBalance is a balance and what it is of.
type measuredBalance struct {
	tables  []weak.Pointer[mih.Table] // that it must not keep
	balance *report.Balance
	until   time.Time // when it is worth the time to measure another one
}

const (
	balancedAtOnce  = 1000 // codes are looked at each time: it takes some microseconds
	balancePatience = 1000 // times as long as it took, it is what is known
)

// presentBalance is balance, or of many codes what it was a moment ago.
func (cv *collectionView) presentBalance() *report.Balance {
	codes := 0
	for i := range cv.sets {
		if cv.sets[i].table == nil {
			return nil
		}
		codes += cv.sets[i].codes
	}
	if codes <= balancedAtOnce {
		return cv.balance(maxBalanced)
	}
	known := cv.balances
	isOf := func(b *measuredBalance) bool {
		return b != nil && (time.Now().Before(b.until) || slices.EqualFunc(b.tables, cv.sets, func(t weak.Pointer[mih.Table], set codeSetView) bool {
			return t.Value() == set.table
		}))
	}
	last := known.last.Load()
	if isOf(last) {
		return last.copy()
	}
	if last == nil {
		known.measuring.Lock()
	} else if !known.measuring.TryLock() { // somebody is at it
		return last.copy()
	}
	defer known.measuring.Unlock()
	if last = known.last.Load(); isOf(last) {
		return last.copy()
	}
	start := time.Now()
	b := &measuredBalance{balance: cv.balance(maxBalanced)}
	for i := range cv.sets {
		b.tables = append(b.tables, weak.Make(cv.sets[i].table))
	}
	b.until = time.Now().Add(balancePatience * time.Since(start))
	known.last.Store(b)
	return b.copy()
}

// copy returns the balance for a caller to keep.
func (b *measuredBalance) copy() *report.Balance {
	if b.balance == nil {
		return nil
	}
	own := *b.balance
	return &own
}
