package learn

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Whoever trains or reindexes builds the space that comes of it; what is left behind by
// a crash or by Close is completed after the next Open, in the background. Only one at a
// time builds a space, and others who want it can wait.

// A building is the work of one builder, as others see it.
type building struct {
	rate  atomic.Int64 // items a second, at most; 0: no limit
	done  atomic.Int64 // rows that have been looked at, of
	total atomic.Int64

	ended chan struct{} // closed when these are known:
	built builtSpace
	err   error
}

// buildings are those that are going on in a database.
type buildings struct {
	mu sync.Mutex
	of map[spaceKey]*building
}

type spaceKey struct{ collection, space uint32 }

// claim returns the building of a space that is going on, or begins one, which the
// caller has to end.
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

func (b *buildings) end(key spaceKey, one *building) {
	b.mu.Lock()
	delete(b.of, key)
	b.mu.Unlock()
	close(one.ended)
}

// errEnded is what others hear of a building that was given up.
var errEnded = errors.New("building a space has ended early")

// run builds the space, or waits for whoever is building it, and goes on where that one
// gives up. It ends early with the context, and with ErrNotFound when the space has been
// dropped.
func (b *builder) run(ctx context.Context) (builtSpace, error) {
	key := spaceKey{b.c.ID, b.space}
	for {
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

// work builds the space while others may wait.
func (b *builder) work(ctx context.Context, key spaceKey, one *building) (builtSpace, error) {
	one.err = errEnded // if a callback panics, too
	defer b.c.in.buildings.end(key, one)
	one.rate.Store(int64(b.rate))
	b.building = one
	built, err := b.build(ctx)
	if err == nil || ctx.Err() == nil {
		one.built, one.err = built, err
	}
	return built, err
}

// watchEvery is how often those who wait hear how far it has got.
const watchEvery = 100 * time.Millisecond

// watch waits until a building ends, under a new limit if there is one.
func (b *builder) watch(ctx context.Context, one *building) error {
	if b.rate > 0 {
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
