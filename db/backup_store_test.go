package db

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fddhdb/fddhdb/db/backup"
)

// memStore is a store of backups in memory.
type memStore struct {
	mu      sync.Mutex
	objects map[string][]byte
}

func newMemStore() *memStore { return &memStore{objects: map[string][]byte{}} }

func (s *memStore) Put(ctx context.Context, name string, r io.ReadSeeker, size int64) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[name] = b
	return ctx.Err()
}

func (s *memStore) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.objects[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return io.NopCloser(bytes.NewReader(b)), ctx.Err()
}

func (s *memStore) List(ctx context.Context, prefix string, f func(backup.Object) error) error {
	var all []backup.Object
	s.mu.Lock()
	for name, b := range s.objects {
		if strings.HasPrefix(name, prefix) {
			all = append(all, backup.Object{Name: name, Size: int64(len(b)), Modified: time.Now()})
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

// clone returns what is in the store; put puts it back.
func (s *memStore) clone() map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.objects)
}

func (s *memStore) put(objects map[string][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects = maps.Clone(objects)
}

// failingStore lets the k-th call fail, or end a context instead.
type failingStore struct {
	backup.Store
	k      atomic.Int64
	cancel context.CancelFunc // nil: fail
}

func (s *failingStore) call(ctx context.Context) error {
	if s.k.Add(-1) != -1 {
		return ctx.Err()
	}
	if s.cancel != nil {
		s.cancel()
		return ctx.Err()
	}
	return errInjected
}

func (s *failingStore) Put(ctx context.Context, name string, r io.ReadSeeker, size int64) error {
	if err := s.call(ctx); err != nil {
		return err
	}
	return s.Store.Put(ctx, name, r, size)
}

func (s *failingStore) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := s.call(ctx); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, name)
}

func (s *failingStore) List(ctx context.Context, prefix string, f func(backup.Object) error) error {
	if err := s.call(ctx); err != nil {
		return err
	}
	return s.Store.List(ctx, prefix, f)
}

func (s *failingStore) Delete(ctx context.Context, name string) error {
	if err := s.call(ctx); err != nil {
		return err
	}
	return s.Store.Delete(ctx, name)
}
