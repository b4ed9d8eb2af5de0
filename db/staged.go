package db

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// stagedFigures are what Stats says of staged imports, so that it need not look for them
// each time. The zero value knows nothing. Safe for concurrent use.
type stagedFigures struct {
	mu      sync.Mutex // guards the fields below; held while it looks, so that one call does
	known   bool       // the others say something
	changes uint64     // of imports, before it was looked
	at      time.Time  // when it was looked
	all     []StagedImport
}

// stagedEvery is how often Stats looks at the files of imports that go on.
const stagedEvery = time.Second

// stagedNow returns what imports have staged: as it is, but for what those that go on have
// written in the last second.
func (d *DB) stagedNow(v *state.View) ([]StagedImport, error) {
	s := &d.staged
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := d.imports.changed.Load()
	fresh := s.known && changes == s.changes &&
		(!slices.ContainsFunc(s.all, func(im StagedImport) bool { return im.Open }) || time.Since(s.at) < stagedEvery)
	if !fresh {
		all, err := d.stagedImports(context.Background(), v)
		if err != nil {
			return nil, err
		}
		s.known, s.changes, s.at, s.all = true, changes, time.Now(), all
	}
	return slices.Clone(s.all), nil
}

// importLeft tells that the folder of an import could not be removed; the next Open tries again.
func (d *DB) importLeft(dir string, err error) {
	d.state.Signals.Happened(event.ImportLeft, slog.LevelWarn, event.Event{Err: err, Attrs: []slog.Attr{slog.String("folder", dir)}})
}
