package report

import (
	"time"

	"github.com/fddhdb/fddhdb/model/fit"
)

// A SpaceState says what a space is used for.
type SpaceState string

// States of spaces.
const (
	SpaceBuilding SpaceState = "building" // not all items have their codes in it yet
	SpaceStandby  SpaceState = "standby"  // complete: it can be searched by number, and activated
	SpaceActive   SpaceState = "active"   // searches use it
)

// SpaceInfo is what there is to tell of a code space.
type SpaceInfo struct {
	Space    Space      `json:"space"`
	State    SpaceState `json:"state"`
	Previous bool       `json:"previous,omitempty"` // Rollback goes back to it
	Parent   Space      `json:"parent,omitempty"`   // the space whose model it took over; 0: it was trained
	Created  time.Time  `json:"created"`
	Bits     int        `json:"bits"`
	Revision uint32     `json:"revision"` // that is in use

	Items   int `json:"items"`            // that have a code
	Built   int `json:"built,omitempty"`  // items that have been looked at, while it is being built
	Codes   int `json:"distinct_codes"`   // that some item has; the sum over the views
	Taught  int `json:"taught"`           // items that its projections have learned from
	Pending int `json:"pending"`          // items that they have not seen yet
	Recode  int `json:"recode,omitempty"` // items whose codes are not those of their labels yet

	// Aim is what its projections learn of labelled items: labels, codes or weighted; with
	// Prior (model.Aim), which is nil for codes. Both are empty in a codes-only collection.
	Aim   string   `json:"aim,omitempty"`
	Prior *float64 `json:"prior,omitempty"`

	// The model that it was trained with, as it is stored, and the statistics.
	ModelBytes      int64  `json:"model_bytes"`
	StatisticsBytes int64  `json:"statistics_bytes"`
	Checksum        string `json:"checksum,omitempty"` // CRC-32C of the model, 8 hexadecimal digits

	// Training is the report of the training, nil where there was none.
	Training *fit.Report `json:"training,omitempty"`
	// Revisions that are kept, ascending; none in a codes-only collection.
	Revisions []RevisionInfo `json:"revisions"`
}
