package backup

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"time"
)

// memStore is a store in memory with the clock of the simulation. Tests elsewhere use
// the one of package storetest, which imports this package.
type memStore struct {
	mu      sync.Mutex
	objects map[string]simObject
}

func newMemStore() *memStore { return &memStore{objects: map[string]simObject{}} }

func (s *memStore) Put(ctx context.Context, name string, r io.ReadSeeker, size int64) error {
	b, err := io.ReadAll(r)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[name] = simObject{b, time.Now()}
	return nil
}

func (s *memStore) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return io.NopCloser(bytes.NewReader(o.b)), ctx.Err()
}

func (s *memStore) List(ctx context.Context, prefix string, f func(Object) error) error {
	var all []Object
	s.mu.Lock()
	for name, o := range s.objects {
		if strings.HasPrefix(name, prefix) {
			all = append(all, Object{name, int64(len(o.b)), o.modified})
		}
	}
	s.mu.Unlock()
	for _, o := range all {
		if err := f(o); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (s *memStore) Delete(ctx context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, name)
	return ctx.Err()
}
