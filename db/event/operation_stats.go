package event

import "time"

// An OperationStats counts the operations of one sort that have ended since the database
// was opened.
type OperationStats struct {
	Op        Op            `json:"op"`
	Done      uint64        `json:"done"`
	Failed    uint64        `json:"failed"`
	Cancelled uint64        `json:"cancelled"` // by the context, or by Close
	Duration  time.Duration `json:"duration_ns"`
}

// A RunningOperation is one that is going on.
type RunningOperation struct {
	Op         Op        `json:"op"`
	Collection string    `json:"collection,omitempty"`
	Began      time.Time `json:"began"`
	Stage      string    `json:"stage,omitempty"`
	Done       int64     `json:"done"` // how much of what is done in the stage; 0 of 0 where that is not known
	Total      int64     `json:"total"`
}
