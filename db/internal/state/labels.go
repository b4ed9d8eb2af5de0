package state

import (
	"slices"
	"sync"
)

// Labels numbers the labels of a collection by first appearance. Numbers are
// never reused, so readers of an older state may go on using it. All methods
// are safe for concurrent use; only the committer adds.
type Labels struct {
	mu    sync.RWMutex
	ids   map[string]uint32
	names []string
}

func NewLabels() *Labels { return &Labels{ids: map[string]uint32{}} }

// Lookup returns the ids of those names that are known, ascending.
func (l *Labels) Lookup(names []string) []uint32 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var ids []uint32
	for _, name := range names {
		if id, ok := l.ids[name]; ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// ID returns the id of a label.
func (l *Labels) ID(name string) (uint32, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	id, ok := l.ids[name]
	return id, ok
}

// Name returns the name of a label.
func (l *Labels) Name(id uint32) (string, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if int(id) >= len(l.names) {
		return "", false
	}
	return l.names[id], true
}

// All returns the names by id; the slice must not be written to.
func (l *Labels) All() []string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.names[:len(l.names):len(l.names)]
}

// Add returns the id of the name and whether it is new.
func (l *Labels) Add(name string) (id uint32, isNew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, ok := l.ids[name]
	if !ok {
		id = uint32(len(l.names))
		l.ids[name] = id
		l.names = append(l.names, name)
	}
	return id, !ok
}

// Count returns how many there are.
func (l *Labels) Count() int { return len(l.All()) }
