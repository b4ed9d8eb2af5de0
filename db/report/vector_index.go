package report

import "time"

// A VectorIndex describes an index of the vectors of a modality.
type VectorIndex struct {
	Index    int       `json:"index"` // its number in the collection
	Modality string    `json:"modality"`
	Complete bool      `json:"complete"` // searches use it
	Created  time.Time `json:"created"`
	Cells    int       `json:"cells"`
	Largest  int       `json:"largest"` // entries of the largest cell
	Entries  int       `json:"entries"` // vectors that it knows
	Unknown  int       `json:"unknown"` // rows that every query is compared with
	Loose    int       `json:"loose"`   // of these, the ones that fit no cell: they wait until the index is made anew
	Bytes    int       `json:"bytes"`   // in memory
	Recall   float64   `json:"recall"`  // that searches get which do not say what they want

	// Outgrown says that so many vectors have come, changed or gone since the index was made that searches
	// compare all vectors until it is made anew.
	Outgrown bool `json:"outgrown,omitempty"`

	// Damage says what is wrong with what is stored of it, once it was read. Searches compare all vectors
	// then, and making the index anew replaces it.
	Damage string `json:"damage,omitempty"`

	// Measured is the recall that was measured when the index was made, with items as queries.
	Measured []RecallPoint      `json:"measured,omitempty"`
	Queries  int                `json:"queries,omitempty"` // that it was measured with, most of them for k = 1 and by dot alone
	Of       int                `json:"of,omitempty"`      // vectors that there were then
	Sample   int                `json:"sample,omitempty"`  // vectors that the centres were found from
	Seconds  map[string]float64 `json:"seconds,omitempty"` // of its making: centres, encode, measure; and total
}

// A RecallPoint is a recall that was measured: the part of the K nearest items that a search with
// some reach finds, which looks into so many cells, with so many entries, on average.
type RecallPoint struct {
	K      int     `json:"k"`
	Reach  float64 `json:"reach"`
	Recall float64 `json:"recall"`
	Error  float64 `json:"error"` // standard error of Recall

	// Worst is the recall of that sixteenth of the queries, by dot of those 32, by the distance of the K-th
	// nearest, which finds least, without its worst one.
	Worst float64 `json:"worst"`

	Probes  float64 `json:"probes"`
	Entries float64 `json:"entries"`
}
