package report

import (
	"github.com/fddhdb/fddhdb/model/eval"
	"github.com/fddhdb/fddhdb/model/fit"
)

// A Space names a code space of a collection, by its number: the first one of a collection
// is 1, and no number is used again. All calls, options and results name spaces so. 0,
// ActiveSpace, stands for the space of the handle: the active one, whichever that is at the
// time of the call, or the one of Collection.InSpace.
type Space uint32

// A Training is what Train did. A training that was only evaluated has made no space: then
// Space and Revision are 0.
type Training struct {
	Space    Space  `json:"space"`    // that the training has made
	Revision uint32 `json:"revision"` // of the space
	Active   bool   `json:"active"`   // searches use the space now
	Items    int    `json:"items"`    // items that have a code in the space
	// LeftOut names modalities that no labelled item has, or without labels no item, so that
	// the model knows nothing of them.
	LeftOut []string `json:"left_out,omitempty"`
	fit.Report
}

// An Update is what Update did.
type Update struct {
	Space    Space  `json:"space"`
	Revision uint32 `json:"revision"` // that is in use after the update
	Revised  bool   `json:"revised"`  // the update has made a revision
	Teacher  string `json:"teacher"`  // that was asked for, as in Teacher.String

	// Numbers of items.
	Items      int `json:"items"`      // that have taught: Labelled and Unlabelled
	Labelled   int `json:"labelled"`   // that have taught with labels that the model knows
	Unlabelled int `json:"unlabelled"` // that have taught without such labels
	Skipped    int `json:"skipped"`    // that were looked at and have taught nothing
	Refused    int `json:"refused"`    // of these, items without labels that TeacherAuto did not let teach
	Forgotten  int `json:"forgotten"`  // that had taught, and have changed or gone since

	// Adopted says which items were let teach, and by which teacher. Lead is the modality
	// whose projections have taught, or have been tried, for items without labels; Reason
	// says, in words, why these were adopted or refused.
	Adopted Adoption `json:"adopted"`
	Lead    string   `json:"lead,omitempty"`
	Reason  string   `json:"reason,omitempty"`

	Grown       []string `json:"grown,omitempty"`        // labels that have got a direction
	NoDirection []string `json:"no_direction,omitempty"` // labels that have got none, as none was left
	Recoded     int      `json:"recoded,omitempty"`      // items that have got another code

	// Drift says how far the items that came were from the model, and so whether to train again
	// (Drift.TrainAgain). Nil if nothing could be measured.
	Drift Drift `json:"drift,omitempty"`

	Seconds float64 `json:"seconds"` // how long it took
}

// An Adoption names the teacher of the items of an update that have taught, as in
// Teacher.String; it is "" if there were none, or they were refused.
type Adoption struct {
	Labelled   string `json:"labelled,omitempty"`   // of items with labels: "labels"
	Unlabelled string `json:"unlabelled,omitempty"` // of items without: "modality" or "self"
}

// A Reindexing is what Reindex did.
type Reindexing struct {
	Space    Space   `json:"space"`            // that it has made
	Parent   Space   `json:"parent,omitempty"` // space whose projections it has; 0: it was trained
	Revision uint32  `json:"revision"`         // of Space
	Items    int     `json:"items"`            // items that have a code in the space
	Active   bool    `json:"active"`           // searches use the space now
	Seconds  float64 `json:"seconds"`          // how long it took
}

// A NeighborRecall is how many of the items that are nearest to queries by vectors of a modality are
// among the first ones by codes.
type NeighborRecall struct {
	Modality string         `json:"modality"`
	Queries  int            `json:"queries"`
	Items    int            `json:"items"`   // with a code and the modality
	K        int            `json:"k"`       // items that are nearest by vectors
	Windows  []WindowRecall `json:"windows"` // as they were given
}

// A WindowRecall is the recall among the first Window items: the mean over the queries of the share of
// the K nearest that is among them. Items at one distance count as in random order.
type WindowRecall struct {
	Window int     `json:"window"`
	Recall float64 `json:"recall"`
}

// A Retrieval is how well queries of one modality find items of another.
type Retrieval struct {
	From string `json:"from"` // name of the modality of the queries
	To   string `json:"to"`   // name of the modality of the items

	// Unlabelled counts the ranked items whose labels are not known. They are relevant to no query,
	// so that where there are many the figures say little.
	Unlabelled int `json:"unlabelled"`

	Hamming    eval.Metrics `json:"hamming"`    // ranked by distance, then row; with the curve by radius
	Asymmetric eval.Metrics `json:"asymmetric"` // ranked by -z.h, then row
}
