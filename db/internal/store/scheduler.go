package store

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// A scheduler decides when the store may compact: whenever the store wants to, except during the pause after
// a failed compaction. Pebble's own scheduler tries again at once, and a damaged table of level 0 then keeps
// a processor busy forever.
//
// Pebble calls the exported methods: pebble.CompactionScheduler, and the handle of a compaction, which is the
// scheduler too.
//
// Lock order: the locks of the store, then mu. Only run makes calls that take locks of the store, and without
// mu: GetAllowedWithoutPermission takes none.
type scheduler struct {
	trouble *tableTrouble          // of compactions
	store   pebble.DBForCompaction // set by Register, before run begins
	poke    chan struct{}          // wakes run; holds one
	stop    chan struct{}          // closed by Unregister
	stopped sync.WaitGroup         // of run

	mu      sync.Mutex // guards the fields below
	running int        // compactions
	closed  bool       // no compaction may begin
}

// lookAgain is how often the scheduler asks the store whether it wants to compact. The answer may change
// without a call.
const lookAgain = 100 * time.Millisecond

// newScheduler returns the scheduler of a store that is not open yet.
func newScheduler(trouble *tableTrouble) *scheduler {
	return &scheduler{trouble: trouble, poke: make(chan struct{}, 1), stop: make(chan struct{})}
}

// Register begins to schedule for a store.
func (s *scheduler) Register(_ int, store pebble.DBForCompaction) {
	s.store = store
	s.stopped.Go(s.run)
}

// Unregister ends scheduling, and returns after the last call of the store. Pebble calls it when the store is
// closed, OpenPebble when opening has failed. A second call does nothing.
func (s *scheduler) Unregister() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.stop)
	}
	s.mu.Unlock()
	s.stopped.Wait()
}

// run grants waiting compactions, after each change and every lookAgain, until Unregister.
func (s *scheduler) run() {
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-s.poke:
		case <-ticker.C:
		}
		for s.take() {
			if waiting, _ := s.store.GetWaitingCompaction(); !waiting || !s.store.Schedule(s) {
				s.giveBack()
				break
			}
		}
	}
}

// take counts another compaction, if one may begin.
func (s *scheduler) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.trouble.rest() > 0 || s.running >= s.store.GetAllowedWithoutPermission() {
		return false
	}
	s.running++
	return true
}

// giveBack uncounts a compaction that has ended, or that the store no longer wants.
func (s *scheduler) giveBack() {
	s.mu.Lock()
	s.running--
	s.mu.Unlock()
}

// TrySchedule tells the store whether it may compact now.
func (s *scheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !s.take() {
		return false, nil
	}
	return true, s
}

// UpdateGetAllowedWithoutPermission is called when the store may want more compactions.
func (s *scheduler) UpdateGetAllowedWithoutPermission() {
	select {
	case s.poke <- struct{}{}:
	default: // run will look
	}
}

// Done is called when a compaction has ended.
func (s *scheduler) Done() {
	s.giveBack()
	s.UpdateGetAllowedWithoutPermission()
}

// Started, MeasureCPU and CumulativeStats are for schedulers that share processors.
func (*scheduler) Started()                                          {}
func (*scheduler) MeasureCPU(pebble.CompactionGoroutineKind)         {}
func (*scheduler) CumulativeStats(pebble.CompactionGrantHandleStats) {}
