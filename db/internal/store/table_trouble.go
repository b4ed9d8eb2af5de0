package store

import (
	"fmt"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db/fault"
)

// A tableTrouble knows how the last attempts of one kind, flushes or compactions, have ended.
// Pebble tries again at once, for as long as it takes: so each attempt after a failure waits
// twice as long as the one before. Nothing is lost meanwhile, as the log has all that a flush
// is to write, and the tables that a compaction is to replace are still there. But memtables
// that cannot be flushed fill the memory, so writes are refused after some failures.
//
// An attempt counts as a whole: one that has written three tables and finds no room for
// the fourth has failed. The zero value knows of no failure. Safe for concurrent use.
type tableTrouble struct {
	mu    sync.Mutex // guards the fields below
	fails int        // one after the other
	last  error      // of the latest attempt; nil: it has succeeded
	until time.Time  // when the next attempt may begin
}

const (
	patience = 4           // failed attempts after which there is trouble
	maxRest  = time.Second // between two attempts
)

// ended notes how an attempt has ended.
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

// rest returns how long the next attempt is to wait.
func (t *tableTrouble) rest() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fails == 0 {
		return 0
	}
	return max(0, time.Until(t.until))
}

// err returns the last failure when there is trouble: when patience attempts in a row have
// failed. Else nil.
func (t *tableTrouble) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fails < patience {
		return nil
	}
	return t.last
}

// first returns the last failure, even if it is the only one.
func (t *tableTrouble) first() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// Admit refuses a write of about so many bytes if there is no room for it, see Reserve.Admit,
// which it calls. Where the disk, though there may be room, takes no tables, nothing is
// written until it does, but what frees space. It never waits for anything but the disk's
// answer how much is free.
func (e *Engine) Admit(bytes int64, frees bool) error {
	if err := e.Log.flushes.err(); err != nil && !frees {
		return e.behind("what is in memory cannot be written into tables", err)
	}
	return e.Reserve.Admit(bytes, frees)
}

// behind returns the error of a write that is refused because the store cannot catch up: what
// says in words with what, err is the error of the last attempt.
func (e *Engine) behind(what string, err error) error {
	if fault.IsDiskFull(err) {
		return e.FullDisk(fmt.Errorf("%s: %w", what, err))
	}
	return fault.ReadError(fmt.Errorf("%s, which is tried again all the time: %w", what, err), "store in %s", e.Dir)
}
