package report

// A Drift says how far items are from what the projections of a revision have learned:
// those that came since the revision before, or of revision 1 those that it was trained
// on. Where it grows from one revision to the next, and more so against revision 1, the
// data moves away from the model: train again. It is measured on a sample.
type Drift struct {
	Items int `json:"items"` // measured
	// Trained: the projections had learned from these items, so that they are nearer
	// than new ones would be.
	Trained    bool                     `json:"trained,omitempty"`
	Modalities map[string]ModalityDrift `json:"modalities"` // by name, that any of them has
}

// A ModalityDrift is about the features of one modality.
type ModalityDrift struct {
	Items    int `json:"items"`    // measured that have it
	Labelled int `json:"labelled"` // of these, with a label that the model knows
	// Far counts those that are so far from everything that the model has learned from
	// that they have no direction in code space, and as queries find nothing.
	Far int `json:"far,omitempty"`
	// Residual is the mean of (h - z)^2 over the bits of the labelled ones, z being
	// what the projection makes of an item whose labels have the code h
	// (model.ResidualOf): 0 where projections give every code, 1 where they say
	// nothing. Nil without labelled ones.
	Residual *float64 `json:"residual,omitempty"`
	// MAP is the mean average precision, expected over ties, of the labelled ones as
	// queries by this modality among each other: each half of them in the other half,
	// which has the codes of its labels. An item that shares no label with that half is no
	// query. It compares between revisions as far as their items have the same mixture
	// of labels. Nil with fewer than 16 queries.
	MAP *float64 `json:"map_tie,omitempty"`
	// Nearest says how far the nearest item is from these, taken as queries: from the
	// code of the projection to the nearest stored one that another item has; with
	// codes for each target modality, to the nearest for each of the others.
	Nearest *Distances `json:"nearest,omitempty"`
	// Balance is that of the codes of the projections; nil where all are far.
	*Balance
	// BitBalance, ConstantBits and Sampled are those of Balance, and 0 where that is nil.
	// JSON has them once, by Balance: what is decoded from JSON is read there.
	BitBalance   float64 `json:"-"`
	ConstantBits int     `json:"-"`
	Sampled      int     `json:"-"`
}

// A RevisionDrift is the drift that was measured when a revision was made.
type RevisionDrift struct {
	Revision uint32 `json:"revision"`
	Drift
}

// Distances are the Hamming distances from queries to the nearest item that each
// found, in bits. P50 and P90 are the smallest within which half and nine tenths of
// the queries found something.
type Distances struct {
	Queries int     `json:"queries"`
	Mean    float64 `json:"mean"`
	P50     int     `json:"p50"`
	P90     int     `json:"p90"`
}

// Balance says how well codes use their bits; see BitBalance and ConstantBits of
// model.Report, of which it is the same.
type Balance struct {
	// BitBalance is the mean over the bits of |mean over the items of the bit as
	// +-1|: 0 where every bit splits the items in halves, 1 where all are constant. Of
	// n items it is seldom below 0.8 / sqrt(n).
	BitBalance   float64 `json:"bit_balance"`
	ConstantBits int     `json:"constant_bits"` // in which no two items differ
	// Sampled is how many items were looked at, where not all were.
	Sampled int `json:"balance_sampled,omitempty"`
}
