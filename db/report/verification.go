package report

import "fmt"

// A Finding is something that is wrong with what is stored.
type Finding struct {
	Collection string `json:"collection,omitempty"` // name, or "number N" if the name is not known; "": it is about no collection
	Space      Space  `json:"space,omitempty"`      // 0: it is about no space
	Record     string `json:"record"`               // the record, in words
	Key        string `json:"key,omitempty"`        // of the record in the store, in hex, see docs/FORMAT.md; "": it has none
	Problem    string `json:"problem"`              // what is wrong, in words
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

// A Verification says how much was looked at, and how many findings there were.
type Verification struct {
	Findings int `json:"-"`       // findings that were reported one by one
	Records  int `json:"records"` // keys of the store that were read; one that is read twice counts twice
	Items    int `json:"items"`   // live items of all collections that could be looked at

	// With Deep, the items whose codes were made again and compared, and the others. A code
	// cannot be made again if its revision is not kept, if its item cannot be read, or if the
	// item is in an index-only collection and has no label that the model knows.
	CodesChecked   int `json:"codes_checked"`
	CodesUnchecked int `json:"codes_unchecked"`

	Seconds float64 `json:"seconds"` // how long it took
}
