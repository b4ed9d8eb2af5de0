package db_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/backup/storetest"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// memStore is a store of backups in memory, of which a state can be kept.
type memStore struct{ storetest.Memory }

func newMemStore() *memStore { return &memStore{} }

// clone returns what is in the store; put puts it back.
func (s *memStore) clone() map[string][]byte {
	all := map[string][]byte{}
	err := s.List(ctx, "", func(o backup.Object) error {
		r, err := s.Get(ctx, o.Name)
		if err != nil {
			return err
		}
		all[o.Name], err = io.ReadAll(r)
		return errors.Join(err, r.Close())
	})
	if err != nil {
		panic(err) // memory does not fail
	}
	return all
}

func (s *memStore) put(objects map[string][]byte) {
	for name := range s.clone() {
		if objects[name] == nil {
			_ = s.Delete(ctx, name)
		}
	}
	for name, b := range objects {
		if err := s.Put(ctx, name, bytes.NewReader(b), int64(len(b))); err != nil {
			panic(err)
		}
	}
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
	return dbkit.ErrInjected
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
