//go:build linux

package main

import (
	"context"
	"syscall"
	"time"
)

// signals sends every verb signals at random moments. The verb has to end in time, and
// nothing acknowledged may be missing.
func signals(ctx context.Context, t *trial) error {
	of := [][]syscall.Signal{{syscall.SIGTERM}, {syscall.SIGINT}, {syscall.SIGKILL},
		{syscall.SIGINT, syscall.SIGINT}, {syscall.SIGTERM, syscall.SIGTERM}}
	tried := some(func(v *verb) bool { return v.writes || v.repo || v.makes != "" || v.slow || v.serves })
	rounds := 1
	if t.f.long {
		tried, rounds = verbs, 4
	}
	n := len(tried) * len(of)
	order := t.shuffled(n)
	t.each(ctx, n*rounds, func(ctx context.Context, a *attempt) error {
		i := order[a.number%n]
		v, signals := tried[i%len(tried)], of[i/len(tried)]
		if err := a.begin(func(dir string) error { return t.f.stocks.supply(dir, &v) }); err != nil {
			return err
		}
		took, b := time.Second, &baseline{}
		if !v.serves {
			var err error
			if b, err = t.f.stocks.baseline(ctx, a, v); err != nil {
				return err
			}
			took = b.took
		}
		c := v.call()
		c.signals, c.grace = signals, t.f.grace
		c.delay = time.Duration(a.r.Float64() * 1.1 * float64(took))
		c.within = c.delay + 2*t.f.grace
		r, err := a.do(ctx, c)
		if err != nil || a.broken {
			return err
		}
		if v.serves {
			return nil
		}
		// The first signal asks the verb to end; the second does not wait.
		if len(signals) > 1 && r.after > 2*time.Second {
			a.found("a second %v does not end it at once: %v", signals[0], r)
		}
		if v.makes != "" && r.code != 0 {
			// It has left a whole database, or one that may be made again in its place.
			if err := a.makesAgain(ctx, v); err != nil {
				return err
			}
		}
		return a.sound(ctx, v, b, r.code == 0)
	})
	return nil
}

// makesAgain runs a verb that makes a database where it was interrupted before.
func (a *attempt) makesAgain(ctx context.Context, v verb) error {
	r, err := a.do(ctx, v.call())
	if err != nil || a.broken || r.code == 0 {
		return err
	}
	whole, err := a.do(ctx, call{args: []string{"verify", v.makes, "--deep"}})
	if err == nil && whole.code != 0 {
		a.found("interrupted, it cannot be carried out again (%v), and what is there is no database: %v", r,
			whole)
	}
	return err
}
