package beam

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// A runner may never report that a worker has died: then the driver would wait for ever. So a process that
// works on an element writes a sign of life to a file, every few seconds, and the driver watches that file.

// beatEvery is the time between two signs of life.
const beatEvery = 2 * time.Second

// beats are the files that this process writes signs of life to, with the number of elements in hand.
var beats struct {
	sync.Mutex
	of map[string]*beat
}

type beat struct {
	elements int
	stop     context.CancelFunc
	ended    chan struct{}
}

func alivePath(dir string) string { return join(dir, "alive") }

// atATime bounds the tasks that this process works on at a time, for any number that a runner hands to it:
// one computes, on all processors, while the other reads. So the memory of a worker does not grow with the
// number of tasks.
const atATime = 2

var slots = make(chan struct{}, atATime)

// working waits until this process may work on a task. Then it writes signs of life to a folder until the
// caller calls done.
func working(ctx context.Context, dir string) (done func(), err error) {
	quiet := beating(dir)
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		quiet()
		return nil, ctx.Err()
	}
	return func() {
		<-slots
		quiet()
	}, nil
}

// beating writes signs of life to a folder until the caller calls done.
func beating(dir string) (done func()) {
	beats.Lock()
	defer beats.Unlock()
	if beats.of == nil {
		beats.of = map[string]*beat{}
	}
	b := beats.of[dir]
	if b == nil {
		ctx, cancel := context.WithCancel(context.Background())
		b = &beat{stop: cancel, ended: make(chan struct{})}
		beats.of[dir] = b
		go func() {
			defer close(b.ended)
			id := rand.Uint64() // of this process: all write to one file
			ticker := time.NewTicker(beatEvery)
			defer ticker.Stop()
			for n := 0; ctx.Err() == nil; n++ {
				// A sign that cannot be written is missed, and the next one may come through.
				_ = write(ctx, alivePath(dir), fmt.Appendf(nil, "%x %d\n", id, n))
				select {
				case <-ticker.C:
				case <-ctx.Done():
				}
			}
		}()
	}
	b.elements++
	return func() {
		beats.Lock()
		b.elements--
		last := b.elements == 0
		if last {
			b.stop()
			delete(beats.of, dir)
		}
		beats.Unlock()
		if last {
			<-b.ended // it has stopped writing: the folder may be removed
		}
	}
}

// errSilent is the error of a pipeline without a sign of life from any worker.
type errSilent time.Duration

func (e errSilent) Error() string {
	return fmt.Sprintf("nothing was heard of a worker for %v", time.Duration(e))
}

// watchdog cancels a pipeline after so long without a sign of life from a worker, and without a result.
func watchdog(ctx context.Context, dir string, results []string,
	silent time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(min(silent/4, time.Second))
		defer ticker.Stop()
		last, sign, n := time.Now(), "", 0
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			// A file that is missing, or just being replaced, says nothing new.
			b, err := read(ctx, alivePath(dir))
			now := there(ctx, results)
			if err == nil && string(b) != sign || now != n {
				last, n = time.Now(), now
				if err == nil {
					sign = string(b)
				}
			}
			if time.Since(last) > silent {
				cancel(errSilent(silent))
				return
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-ended
	}
}
