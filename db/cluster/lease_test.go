package cluster_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
)

// A lease that was renewed without its holder hearing of it is the holder's: it goes on, and can be given
// back.
func TestRenewalThatIsNotHeardOf(t *testing.T) {
	h := build(t, 1, 1, 1, 1)
	c := h.connect()
	waits := []time.Duration{0, 6 * time.Second}
	if testing.Short() {
		waits = waits[:1]
	}
	for _, wait := range waits {
		end, lost, err := cluster.RenewUnheard(t.Context(), c, "lease.test")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := cluster.RenewUnheard(t.Context(), h.connect(), "lease.test"); !errors.Is(err,
			db.ErrBusy) {
			t.Error("a second holder:", err)
		}
		select {
		case <-lost:
			t.Error("the holder has lost it")
		case <-time.After(wait): // the holder renews it
		}
		end()
	}
	end, _, err := cluster.RenewUnheard(t.Context(), h.connect(), "lease.test")
	if err != nil {
		t.Fatal("it was not given back:", err)
	}
	end()
}

// A client takes a lease, and its context ends before the servers answer. The next client gets the lease.
func TestLeaseNotWaitedFor(t *testing.T) {
	h := build(t, 3, 1, 1, 1)
	c := h.connect()
	pairs := c.Collection("pairs") // there is none: trainings end with that
	for i := range 25 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*200)*time.Microsecond)
		_, _ = pairs.Train(ctx, db.TrainOptions{})
		cancel()
		if _, err := pairs.Train(t.Context(), db.TrainOptions{}); !errors.Is(err, db.ErrNotFound) {
			t.Fatal(i, err)
		}
	}
}
