package report

// A Migration brings a database from one format to the next. Each is atomic: a database
// is of one format or of the next, whenever it is interrupted, and Upgrade goes on from
// there. None goes back.
type Migration struct {
	To   int    `json:"to"`   // the format that it leads to, from the one before
	What string `json:"what"` // what it does, in words for a user
}
