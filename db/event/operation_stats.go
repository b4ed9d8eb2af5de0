package event

import "time"

// An OperationStats counts the ended operations of one kind since the database was
// opened.
type OperationStats struct {
	Op        Op            `json:"op"`
	Done      uint64        `json:"done"`
	Failed    uint64        `json:"failed"`
	Cancelled uint64        `json:"cancelled"`   // by the context, or by Close
	Duration  time.Duration `json:"duration_ns"` // total
}

// A RunningOperation is an operation that is running.
type RunningOperation struct {
	Op         Op        `json:"op"`
	Collection string    `json:"collection,omitempty"`
	Began      time.Time `json:"began"`
	Stage      string    `json:"stage,omitempty"`
	Done       int64     `json:"done"` // progress within the stage; 0 of 0 if unknown
	Total      int64     `json:"total"`
}
