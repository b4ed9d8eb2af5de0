package report

// A Repairing says what came of a repair.
type Repairing struct {
	Damaged  bool `json:"-"`     // something had to be repaired
	Findings int  `json:"-"`     // findings that were reported one by one: what could not be saved
	Items    int  `json:"items"` // items of all collections, after the repair

	// Numbers of items with codes, after the repair. An item of several spaces counts in each.
	CodesKept int `json:"codes_kept"` // items that had brought their codes, which are kept
	CodesMade int `json:"codes_made"` // items of learned collections, whose codes were made again

	DamagedDir string  `json:"damaged,omitempty"` // name, in the folder of the database, that the damaged store has now; "": it was not replaced
	Seconds    float64 `json:"seconds"`           // how long it took
}
