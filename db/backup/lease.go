package backup

import (
	"bytes"
	"context"
	"sync"
	"time"
)

const (
	refresh = time.Minute      // interval in which a running backup shows that it runs
	stale   = 30 * time.Minute // without a sign for so long, by the clock of the store, it counts as dead
)

// A lease is the manifest of a running backup: an object that is put again and again.
type lease struct {
	store Store
	name  string

	one chan struct{} // guards b: it holds one element while b is written or put
	b   []byte        // the manifest
}

// keep shows m, and shows it again until stop is called, which removes it. If it cannot
// be shown, keep calls failed.
func (l *lease) keep(ctx context.Context, m *Manifest, failed context.CancelCauseFunc) (stop func(), err error) {
	if err := l.show(ctx, m); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var gone sync.WaitGroup
	gone.Go(func() {
		t := time.NewTicker(refresh)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				if err := l.put(ctx, nil); err != nil && ctx.Err() == nil {
					failed(err)
				}
			}
		}
	})
	return func() {
		cancel()
		gone.Wait()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_ = l.store.Delete(ctx, l.name) // a stale leftover is collected
	}, nil
}

// show replaces the manifest from now on.
func (l *lease) show(ctx context.Context, m *Manifest) error {
	b, err := m.encode()
	if err != nil {
		return err
	}
	return l.put(ctx, b)
}

// put puts the manifest; the last one if b is nil.
func (l *lease) put(ctx context.Context, b []byte) error {
	select {
	case l.one <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-l.one }()
	if b != nil {
		l.b = b
	}
	return putBytes(ctx, l.store, l.name, l.b)
}

func putBytes(ctx context.Context, s Store, name string, b []byte) error {
	return s.Put(ctx, name, bytes.NewReader(b), int64(len(b)))
}
