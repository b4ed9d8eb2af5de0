package report

import (
	"fmt"
	"time"

	"github.com/fddhdb/fddhdb/model/eval"
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

// RevisionInfo describes a revision of a space. Revision 1 is the model as it was trained;
// each later one is what an update has made of the projections.
type RevisionInfo struct {
	Revision uint32    `json:"revision"`         // number, from 1
	Parent   uint32    `json:"parent,omitempty"` // revision that it was made from; 0: none
	Created  time.Time `json:"created"`

	// As in report.Update: who taught, or "restored" if the revision has the projections of its parent, or
	// "imported" if it was made elsewhere; which modality led or was tried for items without labels; and why
	// these were adopted or not. Empty for revision 1.
	Teacher string `json:"teacher,omitempty"`
	Lead    string `json:"lead,omitempty"`
	Reason  string `json:"reason,omitempty"`

	// Numbers of items: those that have taught since the revision before, of these with
	// labels that the model knows and without, and those whose teaching was taken back.
	Items      int `json:"items"`
	Labelled   int `json:"labelled"`
	Unlabelled int `json:"unlabelled"`
	Forgotten  int `json:"forgotten"`

	// Drift says how far the new items were from the model before they taught. Nil if nothing could
	// be measured, and of revision 1.
	Drift Drift `json:"drift,omitempty"`

	Bytes    int64  `json:"bytes,omitempty"`    // length of its model as it is stored
	Checksum string `json:"checksum,omitempty"` // CRC-32C of the stored model, 8 hexadecimal digits
}

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

// A Drift says, by name of the modality, how far items are from those that a model was trained on. It is
// near 0 for items of the same source, and grows as the data moves away from the model.
//
// Of a model that was learned from labels it is the share of what labels teach that the projections miss
// (model.Model.ResidualOf), above the share that they miss of the items of the training when each is left
// out. Where they know half of what labels teach, it is .5 for items that they say nothing about.
//
// Of a model that was learned without labels it is how far the mean of the projections is from that of the
// training (model.Model.OffsetOf): 1 where all projections are the same.
//
// It is measured on a sample. A modality that fewer than 16 of the items have is left out.
type Drift map[string]float64

// DriftLimit is the drift above which it is time to train again.
const DriftLimit = .2

// TrainAgain reports whether the drift of any modality is above DriftLimit.
func (d Drift) TrainAgain() bool {
	for _, x := range d {
		if x > DriftLimit {
			return true
		}
	}
	return false
}

// Distances are the Hamming distances from queries to the nearest item that each
// found, in bits. P50 and P90 are the smallest within which half and nine tenths of
// the queries found something.
type Distances struct {
	Queries int     `json:"queries"` // number of queries that found something
	Mean    float64 `json:"mean"`    // over these queries
	P50     int     `json:"p50"`
	P90     int     `json:"p90"`
}

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
	// of these, the ones that fit no cell: they wait until the index is made again
	Loose  int     `json:"loose"`
	Bytes  int     `json:"bytes"`  // in memory
	Recall float64 `json:"recall"` // that searches get which do not say what they want

	// Outgrown says that so many vectors have come, changed or gone since the index was made that searches
	// compare all vectors until it is made again.
	Outgrown bool `json:"outgrown,omitempty"`

	// Damage says what is wrong with what is stored of it, once it was read. Searches compare all vectors
	// then, and making the index again replaces it.
	Damage string `json:"damage,omitempty"`

	// Waiting says, of an index of a cluster, which shards cannot make it yet, and why.
	Waiting []string `json:"waiting,omitempty"`

	// Measured is the recall that was measured when the index was made, with items as queries.
	Measured []RecallPoint `json:"measured,omitempty"`
	// that it was measured with, most of them for k = 1 and by dot alone
	Queries int `json:"queries,omitempty"`
	Of      int `json:"of,omitempty"`     // vectors that there were then
	Sample  int `json:"sample,omitempty"` // vectors that the centres were found from
	// of its making: centres, encode, measure; and total
	Seconds map[string]float64 `json:"seconds,omitempty"`
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

// A Finding is something that is wrong with what is stored.
type Finding struct {
	// name, or "number N" if the name is not known; "": it is about no collection
	Collection string `json:"collection,omitempty"`
	Space      Space  `json:"space,omitempty"` // 0: it is about no space
	Record     string `json:"record"`          // the record, in words
	// of the record in the store, in hex, see docs/FORMAT.md; "": it has none
	Key     string `json:"key,omitempty"`
	Problem string `json:"problem"` // what is wrong, in words
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

// A Repairing says what came of a repair.
type Repairing struct {
	Damaged  bool `json:"-"`     // something had to be repaired
	Findings int  `json:"-"`     // findings that were reported one by one: what could not be saved
	Items    int  `json:"items"` // items of all collections, after the repair

	// Numbers of items with codes, after the repair. An item of several spaces counts in each.
	CodesKept int `json:"codes_kept"` // items that had brought their codes, which are kept
	CodesMade int `json:"codes_made"` // items of learned collections, whose codes were made again

	// name, in the folder of the database, that the damaged store has now; "": it was not replaced
	DamagedDir string  `json:"damaged,omitempty"`
	Seconds    float64 `json:"seconds"` // how long it took
}

// A Recovery says how what Open found in the store compares with what was known to be
// durable. Each commit has a number, and what a store can lose is a suffix: the latest
// commits, whole. Losses that were found earlier stay in Losses until they are
// acknowledged.
type Recovery struct {
	Found    uint64 `json:"found"`    // the last commit in the store
	Promised uint64 `json:"promised"` // the last that was known to be durable; there may have been later ones
	Losses   []Loss `json:"losses,omitempty"`

	// Problem says, where that is so, why it is not known what was durable: the side
	// file is missing or damaged, or of another database. It has been made again then,
	// but not where the database is read-only.
	Problem string `json:"problem,omitempty"`
}

// Missing returns how many commits Open found to be missing: at least so many are.
func (r Recovery) Missing() uint64 {
	if r.Promised > r.Found {
		return r.Promised - r.Found
	}
	return 0
}

// A Loss is a run of commits that were durable and have gone from the store: its log was
// damaged, or it was replaced by an older copy. New commits take their numbers again.
type Loss struct {
	Found time.Time `json:"found"` // when Open saw it
	First uint64    `json:"first"`
	Last  uint64    `json:"last"`
}

// Commits returns how many commits are lost.
func (l Loss) Commits() uint64 { return l.Last - l.First + 1 }

// String returns the loss in words.
func (l Loss) String() string {
	when := l.Found.UTC().Format(time.RFC3339)
	if l.First == l.Last {
		return fmt.Sprintf("commit %d, the latest then, was missing on %s", l.First, when)
	}
	return fmt.Sprintf("the commits %d to %d, the latest then, were missing on %s", l.First, l.Last, when)
}
