package storetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db/backup"
)

// Memory is a backup.Store in memory, for tests. The zero value is empty and ready for
// use. It is safe for concurrent use.
type Memory struct {
	mu      sync.Mutex        // guards objects
	objects map[string]stored // by name
}

// stored is an object. Its bytes never change.
type stored struct {
	data     []byte
	modified time.Time
}

var _ backup.Store = (*Memory)(nil)

// Put implements backup.Store.
func (m *Memory) Put(ctx context.Context, name string, r io.ReadSeeker, size int64) error {
	var b bytes.Buffer
	// Another byte would be too many.
	if _, err := io.Copy(&b, io.LimitReader(contextReader{ctx, r}, size+1)); err != nil {
		return fmt.Errorf("fddhdb: put %s: %w", name, err)
	}
	if int64(b.Len()) != size {
		return fmt.Errorf("fddhdb: put %s: there are not %d bytes to read", name, size)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.objects == nil {
		m.objects = map[string]stored{}
	}
	m.objects[name] = stored{b.Bytes(), time.Now()}
	return nil
}

// Get implements backup.Store.
func (m *Memory) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[name]
	if !ok {
		return nil, fmt.Errorf("fddhdb: get %s: %w", name, fs.ErrNotExist)
	}
	return io.NopCloser(contextReader{ctx, bytes.NewReader(o.data)}), nil
}

// List implements backup.Store, in the order of the names.
func (m *Memory) List(ctx context.Context, prefix string, f func(backup.Object) error) error {
	for _, o := range m.list(prefix) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f(o); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (m *Memory) list(prefix string) []backup.Object {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []backup.Object
	for name, o := range m.objects {
		if strings.HasPrefix(name, prefix) {
			list = append(list, backup.Object{Name: name, Size: int64(len(o.data)), Modified: o.modified})
		}
	}
	slices.SortFunc(list, func(a, b backup.Object) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Delete implements backup.Store.
func (m *Memory) Delete(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, name)
	return nil
}

// contextReader reads until the context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
