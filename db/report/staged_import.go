package report

import "time"

// A StagedImport is what an import has staged and not removed: it goes on, or was
// interrupted.
type StagedImport struct {
	Collection string    `json:"collection"` // "" where that is gone
	Source     string    `json:"source"`     // ImportOptions.Source
	Bytes      int64     `json:"bytes"`      // on disk
	Touched    time.Time `json:"touched"`    // when something of it was last written
	Open       bool      `json:"open"`       // it goes on, in this process
	Committed  bool      `json:"committed"`  // its process ended when all was stored: see Import.Commit
}
