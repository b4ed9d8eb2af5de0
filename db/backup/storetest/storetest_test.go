package storetest

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fddhdb/fddhdb/db/backup"
)

func TestMemory(t *testing.T) {
	Run(t, func(*testing.T) backup.Store { return new(Memory) })
}

// Every mistake that a store could make is found by its own check.
func TestMistakesAreFound(t *testing.T) {
	for _, c := range []struct {
		mistake string
		found   string // name of the check
		store   func() backup.Store
	}{
		{"changes a byte", "Bytes", func() backup.Store {
			return &mistaken{get: func(m *mistaken, ctx context.Context, name string) (io.ReadCloser, error) {
				r, err := m.Memory.Get(ctx, name)
				if err != nil {
					return nil, err
				}
				b, err := io.ReadAll(r)
				if len(b) > 5000 {
					b[5000] ^= 1
				}
				return io.NopCloser(bytes.NewReader(b)), err
			}}
		}},
		{"seeks to the beginning of the reader", "FromWhereTheReaderStands", func() backup.Store {
			return &mistaken{put: func(m *mistaken, ctx context.Context, name string, r io.ReadSeeker,
				size int64) error {
				if _, err := r.Seek(0, io.SeekStart); err != nil {
					return err
				}
				return m.Memory.Put(ctx, name, io.NewSectionReader(r.(io.ReaderAt), 0, size), size)
			}}
		}},
		{"cuts long names", "Names", func() backup.Store {
			return &mistaken{name: func(s string) string { return s[:min(len(s), 100)] }}
		}},
		{"keeps the first one", "Replace", func() backup.Store {
			return &mistaken{put: func(m *mistaken, ctx context.Context, name string, r io.ReadSeeker,
				size int64) error {
				if len(m.list(name)) > 0 {
					return nil
				}
				return m.Memory.Put(ctx, name, r, size)
			}}
		}},
		{"gives an empty object for none", "Missing", func() backup.Store {
			return &mistaken{get: func(m *mistaken, ctx context.Context, name string) (io.ReadCloser, error) {
				if r, err := m.Memory.Get(ctx, name); err == nil {
					return r, nil
				}
				return io.NopCloser(strings.NewReader("")), nil
			}}
		}},
		{"deletes what lies under the name", "Missing", func() backup.Store {
			return &mistaken{delete: func(m *mistaken, ctx context.Context, name string) error {
				for _, o := range m.list(name + "/") {
					_ = m.Memory.Delete(ctx, o.Name)
				}
				return m.Memory.Delete(ctx, name)
			}}
		}},
		{"deletes nothing", "Delete", func() backup.Store {
			return &mistaken{delete: func(*mistaken, context.Context, string) error { return nil }}
		}},
		{"takes a prefix for a folder", "Prefixes", func() backup.Store {
			return &mistaken{lists: func(m *mistaken, ctx context.Context, prefix string,
				f func(backup.Object) error) error {
				if prefix != "" {
					prefix = strings.TrimSuffix(prefix, "/") + "/"
				}
				return m.Memory.List(ctx, prefix, f)
			}}
		}},
		{"goes on after an error", "ErrorOfTheCallback", func() backup.Store {
			return &mistaken{lists: func(m *mistaken, ctx context.Context, prefix string,
				f func(backup.Object) error) error {
				return m.Memory.List(ctx, prefix, func(o backup.Object) error { _ = f(o); return nil })
			}}
		}},
		{"lists one page", "Many", func() backup.Store {
			return &mistaken{lists: func(m *mistaken, ctx context.Context, prefix string,
				f func(backup.Object) error) error {
				for _, o := range m.list(prefix)[:min(50, len(m.list(prefix)))] {
					if err := f(o); err != nil {
						return err
					}
				}
				return ctx.Err()
			}}
		}},
		{"pages by number", "ListWhileOthersWrite", func() backup.Store {
			return &mistaken{lists: func(m *mistaken, ctx context.Context, prefix string,
				f func(backup.Object) error) error {
				for i := 0; ; i++ {
					list := m.list(prefix)
					if i >= len(list) {
						return ctx.Err()
					}
					if err := f(list[i]); err != nil {
						return err
					}
				}
			}}
		}},
		{"cuts large objects", "Large", func() backup.Store {
			return &mistaken{get: func(m *mistaken, ctx context.Context, name string) (io.ReadCloser, error) {
				r, err := m.Memory.Get(ctx, name)
				if err != nil {
					return nil, err
				}
				return io.NopCloser(io.LimitReader(r, 1<<20)), nil
			}}
		}},
		{"stores what there is", "WrongSize", func() backup.Store { return &mistaken{put: putWhatThereIs} }},
		{"stores what has been read", "FailingReader",
			func() backup.Store { return &mistaken{put: putWhatThereIs} }},
		{"ignores the context", "Cancelled", func() backup.Store {
			return &mistaken{put: func(m *mistaken, _ context.Context, name string, r io.ReadSeeker,
				size int64) error {
				return m.Memory.Put(context.Background(), name, r, size)
			}}
		}},
		{"ends List without an error", "CancelledHalfway", func() backup.Store {
			return &mistaken{lists: func(m *mistaken, ctx context.Context, prefix string,
				f func(backup.Object) error) error {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				_ = m.Memory.List(ctx, prefix, f)
				return nil
			}}
		}},
		{"writes in place", "Atomic",
			func() backup.Store { return &inPlace{looked: make(chan struct{}, 1)} }},
		{"reads on in the new object", "ReplacedWhileRead", func() backup.Store {
			return &mistaken{get: func(m *mistaken, ctx context.Context, name string) (io.ReadCloser, error) {
				if _, err := m.Memory.Get(ctx, name); err != nil {
					return nil, err
				}
				return &reopening{m: &m.Memory, ctx: ctx, name: name}, nil
			}}
		}},
		{"has one object for all", "Concurrent", func() backup.Store {
			return &mistaken{name: func(s string) string { return s[:1] }}
		}},
	} {
		t.Run(c.mistake, func(t *testing.T) {
			all := checks()
			i := slices.IndexFunc(all, func(check check) bool { return check.name == c.found })
			if i < 0 {
				t.Fatalf("there is no check %s", c.found)
			}
			err := all[i].run(t.Context(), c.store(), scaleOf(true))
			if err == nil {
				t.Fatalf("%s does not find it", c.found)
			}
			t.Log(err)
		})
	}
}

// A mistaken store has another implementation of one of its methods.
type mistaken struct {
	Memory
	name   func(string) string
	put    func(m *mistaken, ctx context.Context, name string, r io.ReadSeeker, size int64) error
	get    func(m *mistaken, ctx context.Context, name string) (io.ReadCloser, error)
	lists  func(m *mistaken, ctx context.Context, prefix string, f func(backup.Object) error) error
	delete func(m *mistaken, ctx context.Context, name string) error
}

func (m *mistaken) Put(ctx context.Context, name string, r io.ReadSeeker, size int64) error {
	if m.name != nil {
		name = m.name(name)
	}
	if m.put != nil {
		return m.put(m, ctx, name, r, size)
	}
	return m.Memory.Put(ctx, name, r, size)
}

func (m *mistaken) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if m.name != nil {
		name = m.name(name)
	}
	if m.get != nil {
		return m.get(m, ctx, name)
	}
	return m.Memory.Get(ctx, name)
}

func (m *mistaken) List(ctx context.Context, prefix string, f func(backup.Object) error) error {
	if m.lists != nil {
		return m.lists(m, ctx, prefix, f)
	}
	return m.Memory.List(ctx, prefix, f)
}

func (m *mistaken) Delete(ctx context.Context, name string) error {
	if m.name != nil {
		name = m.name(name)
	}
	if m.delete != nil {
		return m.delete(m, ctx, name)
	}
	return m.Memory.Delete(ctx, name)
}

func putWhatThereIs(m *mistaken, ctx context.Context, name string, r io.ReadSeeker, _ int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b, _ := io.ReadAll(r)
	return m.Memory.Put(ctx, name, bytes.NewReader(b), int64(len(b)))
}

// reopening opens the object again for each piece that it reads.
type reopening struct {
	m    *Memory
	ctx  context.Context
	name string
	at   int64
}

func (r *reopening) Read(p []byte) (int, error) {
	o, err := r.m.Get(r.ctx, r.name)
	if err != nil {
		return 0, err
	}
	if _, err := io.CopyN(io.Discard, o, r.at); err != nil {
		return 0, err
	}
	n, err := o.Read(p)
	r.at += int64(n)
	return n, err
}

func (r *reopening) Close() error { return nil }

// inPlace writes an object over the one before, in two halves. The first time it waits
// in between until someone has looked.
type inPlace struct {
	Memory
	writing sync.Mutex // held by the writer
	waited  bool
	looked  chan struct{} // half of an object was there; holds one element

	mu   sync.RWMutex
	half bool // half of an object is there
}

func (s *inPlace) Put(ctx context.Context, name string, r io.ReadSeeker, size int64) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if half := len(b) / 2; half > 1000 && !s.waited && len(s.list(name)) > 0 {
		if err := s.put(ctx, name, b[:half], true); err != nil {
			return err
		}
		<-s.looked
		s.waited = true
	}
	return s.put(ctx, name, b, false)
}

func (s *inPlace) put(ctx context.Context, name string, b []byte, half bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.half = half
	return s.Memory.Put(ctx, name, bytes.NewReader(b), int64(len(b)))
}

func (s *inPlace) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	defer s.look()
	return s.Memory.Get(ctx, name)
}

func (s *inPlace) List(ctx context.Context, prefix string, f func(backup.Object) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	defer s.look()
	return s.Memory.List(ctx, prefix, f)
}

// look signals that someone has found half of an object.
func (s *inPlace) look() {
	if !s.half {
		return
	}
	select {
	case s.looked <- struct{}{}:
	default: // already signalled
	}
}
