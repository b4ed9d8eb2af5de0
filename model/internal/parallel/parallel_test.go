package parallel

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
)

func TestParallelVisitsEachOnce(t *testing.T) {
	for _, workers := range []int{1, 3, 50} {
		for _, n := range []int{0, 1, 2, 100} {
			visits := make([]atomic.Int32, n)
			Do(workers, n, func(worker, i int) {
				if worker < 0 || worker >= workers {
					t.Errorf("worker %d of %d", worker, workers)
				}
				visits[i].Add(1)
			})
			for i := range visits {
				if visits[i].Load() != 1 {
					t.Errorf("%d workers, n = %d: %d visited %d times", workers, n, i, visits[i].Load())
				}
			}
		}
	}
}

// A panic of gonum becomes an error, in whichever goroutine it happens. No input is
// known to cause one.
func TestPanicsBecomeErrors(t *testing.T) {
	cause := errors.New("mat: dimension mismatch")
	for _, workers := range []int{1, 4} {
		err := func() (err error) {
			defer Guard(&err, "testing")
			Do(workers, 10, func(_, i int) {
				if i == 7 {
					panic(cause)
				}
			})
			return nil
		}()
		if err == nil || !errors.Is(err, cause) || !strings.Contains(err.Error(), "testing: internal error") {
			t.Errorf("%d workers: %v", workers, err)
		}
	}
	err := func() (err error) {
		defer Guard(&err, "testing")
		panic("blas: n < 0")
	}()
	if err == nil || !strings.Contains(err.Error(), "blas: n < 0") {
		t.Error(err)
	}
}
