package report

import "fmt"

// A Finding is something that is wrong with what is stored.
type Finding struct {
	Collection string `json:"collection,omitempty"` // its name, or its number where that has none
	Space      uint32 `json:"space,omitempty"`
	Record     string `json:"record"`        // in words
	Key        string `json:"key,omitempty"` // of the record in the store, in hex; see docs/FORMAT.md
	Problem    string `json:"problem"`
}

// String returns the finding on one line. Names that are stored stand in it as they are.
func (f Finding) String() string {
	s := f.Record + ": " + f.Problem
	if f.Space != 0 {
		s = fmt.Sprintf("space %d: %s", f.Space, s)
	}
	if f.Collection != "" {
		s = fmt.Sprintf("collection %q: %s", f.Collection, s)
	}
	return s
}

// A Verification says what was looked at.
type Verification struct {
	Findings       int     `json:"-"`
	Records        int     `json:"records"`         // keys of the store that were read
	Items          int     `json:"items"`           // of all collections
	CodesChecked   int     `json:"codes_checked"`   // that were made again; with Deep
	CodesUnchecked int     `json:"codes_unchecked"` // whose revision is not kept, or whose item cannot be read or, not being labelled, is in an index-only collection; with Deep
	Seconds        float64 `json:"seconds"`
}
