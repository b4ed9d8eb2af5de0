package learn

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// A training or reindexing builds its space itself. Resume completes, after Open, a space that
// a crash or Close has interrupted. One builder at a time builds a space; others that want it
// complete wait for that builder.

// A building is the work of one builder, as waiting builders see it.
type building struct {
	rate  atomic.Int64 // the most items a second, 0 for no limit; a waiting builder may replace it
	done  atomic.Int64 // the items looked at so far
	total atomic.Int64 // the items to look at; 0: not known yet

	// The builder writes built and err, then closes ended. Others read them only after that.
	ended chan struct{}
	built builtSpace
	err   error // errEnded: it was given up, and another builder may go on
}

// buildings are the builders at work in a database. Safe for concurrent use.
type buildings struct {
	mu sync.Mutex
	of map[spaceKey]*building // guarded by mu; made by the first claim
}

// A spaceKey names a space of a database by the numbers of its collection and itself.
type spaceKey struct{ collection, space uint32 }

// claim returns the building of a space if there is one. Else it begins one; then mine is
// true, and the caller must call end.
func (b *buildings) claim(key spaceKey) (one *building, mine bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if one := b.of[key]; one != nil {
		return one, false
	}
	if b.of == nil {
		b.of = map[spaceKey]*building{}
	}
	one = &building{ended: make(chan struct{})}
	b.of[key] = one
	return one, true
}

// end ends a building that claim has begun, and wakes those that wait for it.
func (b *buildings) end(key spaceKey, one *building) {
	b.mu.Lock()
	// Remove it before closing ended: a waiting builder that wakes claims the space at once, and
	// must not find this building again.
	delete(b.of, key)
	b.mu.Unlock()
	close(one.ended)
}

// errEnded says to waiting builders that the building was given up, as its context ended or a
// callback panicked.
var errEnded = errors.New("building a space has ended early")

// run builds the space. If another builder is at it, run waits for that one, and goes on if it
// gives up. Errors: the error of ctx, ErrNotFound if the space has been dropped, any error of the
// other builder.
func (b *builder) run(ctx context.Context) (builtSpace, error) {
	key := spaceKey{b.c.ID, b.space}
	for {
		// Several builders may wake when one gives up. One of them claims the space, and the others
		// watch that one. TestReindexTogether of db has three.
		one, mine := b.c.in.buildings.claim(key)
		if mine {
			return b.work(ctx, key, one)
		}
		if err := b.watch(ctx, one); err != nil {
			return builtSpace{}, err
		}
		if one.err != errEnded {
			return one.built, one.err
		}
	}
}

// work builds the space as the one builder that has claimed it.
func (b *builder) work(ctx context.Context, key spaceKey, one *building) (builtSpace, error) {
	one.err = errEnded // stays if ctx ends or a callback panics
	defer b.c.in.buildings.end(key, one)
	one.rate.Store(int64(b.rate))
	b.building = one
	// The end of ctx and a panic of a callback concern this call alone: errEnded stays, and another
	// builder goes on. Any other error, such as damage, would meet every builder, so all waiting
	// calls get it.
	built, err := b.build(ctx)
	if err == nil || ctx.Err() == nil {
		one.built, one.err = built, err
	}
	return built, err
}

// watchEvery is the time between two progress reports of a waiting builder.
const watchEvery = 100 * time.Millisecond

// watch waits until a building ends, and reports its progress. If b has a rate, that replaces
// the rate of the building.
func (b *builder) watch(ctx context.Context, one *building) error {
	if b.rate > 0 { // build reads it before each block
		one.rate.Store(int64(b.rate))
	}
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	last := int64(-1)
	for {
		if done, total := one.done.Load(), one.total.Load(); b.progress != nil && total > 0 && done != last {
			b.progress("encode", done, total)
			last = done
		}
		select {
		case <-one.ended:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}
