package store

import (
	"fmt"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db/fault"
)

// A tableTrouble has the results of the last attempts of one kind, flushes or compactions. Pebble tries again
// at once, as often as it takes; so after a failure each attempt waits twice as long as the one before.
// Nothing is lost meanwhile: the log has all data to flush, and the tables to compact still exist. But
// memtables that cannot be flushed fill the memory, so writes are refused after some failures.
//
// An attempt counts as a whole: if it has written three tables and finds no room for the fourth, it has
// failed. The zero value has no failure. Safe for concurrent use.
type tableTrouble struct {
	mu    sync.Mutex // guards the fields below
	fails int        // in a row
	last  error      // of the latest attempt; nil: success
	until time.Time  // when the next attempt may begin
}

const (
	patience = 4           // failed attempts in a row that mean trouble
	maxRest  = time.Second // longest pause between two attempts
)

// ended records the result of an attempt.
func (t *tableTrouble) ended(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.fails, t.last, t.until = 0, nil, time.Time{}
		return
	}
	t.fails++
	t.last = err
	t.until = time.Now().Add(min(time.Millisecond<<min(t.fails, 16), maxRest))
}

// rest returns the pause before the next attempt.
func (t *tableTrouble) rest() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fails == 0 {
		return 0
	}
	return max(0, time.Until(t.until))
}

// err returns the last failure if there is trouble, after patience failed attempts in a row; else nil.
func (t *tableTrouble) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fails < patience {
		return nil
	}
	return t.last
}

// first returns the last failure, even a single one.
func (t *tableTrouble) first() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// Admit refuses a write of about so many bytes if there is no room for it, see Reserve.Admit. If flushes fail
// although there may be room, it refuses all writes except writes that free space, until a flush succeeds. It
// waits only for the disk to report its free space.
func (e *Engine) Admit(bytes int64, frees bool) error {
	if err := e.Log.flushes.err(); err != nil && !frees {
		return e.behind("what is in memory cannot be written into tables", err)
	}
	return e.Reserve.Admit(bytes, frees)
}

// behind returns the error of a refused write: the store cannot catch up. what names the failing work, err is
// the error of the last attempt.
func (e *Engine) behind(what string, err error) error {
	if fault.IsDiskFull(err) {
		return e.FullDisk(fmt.Errorf("%s: %w", what, err))
	}
	return fault.ReadError(fmt.Errorf("%s, which is tried again all the time: %w", what, err), "store in %s", e.Dir)
}
