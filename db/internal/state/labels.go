package state

import (
	"maps"
	"slices"
	"sync"

	"github.com/fddhdb/fddhdb/db/internal/record"
)

// Labels numbers the labels of a collection by first appearance, from 0 on. Numbers are never reused, so
// views share one Labels: no record of an older view has the id of a later label, and CollectionView.Names
// has the labels of the view. To rename a label the committer makes another Labels (Renamed), and older views
// keep theirs. All methods are safe for concurrent use; only the committer adds labels.
type Labels struct {
	mu    sync.RWMutex      // guards the fields below
	ids   map[string]uint32 // by name
	names []string          // by id; only appended to, so that All may share it
}

// NewLabels returns a numbering without labels.
func NewLabels() *Labels { return &Labels{ids: map[string]uint32{}} }

// Lookup returns the ids of the known names, ascending and each once, in a new slice.
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

// ID returns the id of a label, and whether it exists.
func (l *Labels) ID(name string) (uint32, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	id, ok := l.ids[name]
	return id, ok
}

// Name returns the name of a label, and whether the label exists.
func (l *Labels) Name(id uint32) (string, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if int(id) >= len(l.names) {
		return "", false
	}
	return l.names[id], true
}

// All returns the present names by id. The slice is shared: do not write to it.
func (l *Labels) All() []string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.names[:len(l.names):len(l.names)]
}

// Add returns the id of the name, a new id if it has none, and whether it is new. Only the committer calls
// it, and stores the new label in the same commit.
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

// Renamed returns a copy in which the label id has another name. If another label has that name, it becomes a
// record.NoLabel. It costs a copy of all names.
func (l *Labels) Renamed(id uint32, name string) *Labels {
	l.mu.RLock()
	defer l.mu.RUnlock()
	out := &Labels{ids: maps.Clone(l.ids), names: slices.Clone(l.names)}
	delete(out.ids, out.names[id])
	if other, taken := out.ids[name]; taken {
		out.names[other] = record.NoLabel(other)
		out.ids[out.names[other]] = other
	}
	out.names[id], out.ids[name] = name, id
	return out
}

// Count returns the number of labels.
func (l *Labels) Count() int { return len(l.All()) }
