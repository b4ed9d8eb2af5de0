package event

import "time"

// An OperationStats counts the ended operations of one kind since the database was
// opened. Each counts as done, failed or cancelled.
type OperationStats struct {
	Op        Op            `json:"op"`
	Done      uint64        `json:"done"`
	Failed    uint64        `json:"failed"`      // with an error, but for those that were cancelled
	Cancelled uint64        `json:"cancelled"`   // ended by the context, or by Close
	Duration  time.Duration `json:"duration_ns"` // of all of them together
}

// A RunningOperation is an operation that is running, as it was when it was asked for.
type RunningOperation struct {
	Op         Op        `json:"op"`
	Collection string    `json:"collection,omitempty"` // name; "": it is about the whole database
	Began      time.Time `json:"began"`
	Stage      string    `json:"stage,omitempty"` // as in Progress; "" before the first
	Done       int64     `json:"done"`            // progress within the stage; 0 of 0 if unknown
	Total      int64     `json:"total"`           // 0 if unknown
}
