package db

import (
	"fmt"
	"sync"
	"time"
)

// A tableTrouble knows of failures to write tables of one kind, flushes or compactions.
// Pebble tries again for as long as it takes, at once: so each attempt after a failure
// waits twice as long as the one before. Nothing is lost meanwhile, as what a flush is to
// write is in the log, and what a compaction is to replace is still there. But memory
// fills up with what cannot be flushed, until Pebble makes writers wait, for ever perhaps;
// so they are refused before. The zero value knows of none. Safe for concurrent use.
type tableTrouble struct {
	mu       sync.Mutex
	attempts int // that have failed one after the other
	last     error
	noted    bool // of the present attempt
}

const (
	patience = 4           // failed flushes after which writes are refused
	maxPause = time.Second // between two attempts
)

// pause waits before another attempt.
func (t *tableTrouble) pause() {
	t.mu.Lock()
	n := t.attempts
	t.noted = false
	t.mu.Unlock()
	if n > 0 {
		time.Sleep(min(time.Millisecond<<min(n, 16), maxPause))
	}
}

// note notes a failure, one an attempt, and returns it.
func (t *tableTrouble) note(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.noted {
		t.attempts++
	}
	t.last, t.noted = err, true
	return err
}

// over notes that a table has been written.
func (t *tableTrouble) over() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attempts, t.last = 0, nil
}

// err returns the last failure, when there have been some in a row.
func (t *tableTrouble) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.attempts < patience {
		return nil
	}
	return t.last
}

// admit refuses a write of about so many bytes if there is no room for it: see reserve. Where
// the disk, though there may be room, takes no tables, nothing is written until it does.
func (d *DB) admit(bytes int64, frees bool) error {
	if err := d.log.flushes.err(); err != nil {
		if isFullDisk(err) {
			return d.fullDisk(err)
		}
		return fmt.Errorf("fddhdb: %s: tables cannot be written, which is tried again all the time: %w", d.dir, err)
	}
	return d.reserve.admit(bytes, frees)
}
