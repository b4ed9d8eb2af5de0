package report

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
