package report

// A Repairing says what came of a repair.
type Repairing struct {
	Damaged    bool    `json:"-"`                 // false: nothing was to be repaired
	Findings   int     `json:"-"`                 // what could not be saved
	Items      int     `json:"items"`             // of all collections, afterwards
	CodesKept  int     `json:"codes_kept"`        // items that had brought their codes, which are those that they have
	CodesMade  int     `json:"codes_made"`        // items of learned collections whose codes were made again; in several spaces each counts
	DamagedDir string  `json:"damaged,omitempty"` // the folder in that of the database where the damaged store is now
	Seconds    float64 `json:"seconds"`
}
