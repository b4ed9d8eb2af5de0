package backup

import (
	"bytes"
	"context"
	"sync"
	"time"
)

const (
	refresh = time.Minute      // how often a running backup shows that it runs
	stale   = 30 * time.Minute // when it has not for so long, by the clock of the store, it is taken for dead
)

// A lease is the manifest of a running backup: an object that is put again and again.
type lease struct {
	store Store
	name  string

	one chan struct{} // holds one while somebody puts b
	b   []byte
}

// keep shows m, and goes on doing so until stop is called, which removes it. If it
// cannot be shown, failed hears of that.
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
		_ = l.store.Delete(ctx, l.name) // what stays is collected when it is stale
	}, nil
}

// show shows another manifest from now on.
func (l *lease) show(ctx context.Context, m *Manifest) error {
	b, err := m.encode()
	if err != nil {
		return err
	}
	return l.put(ctx, b)
}

// put puts the manifest; that from before where b is nil.
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
