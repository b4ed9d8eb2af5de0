package report

// A Drift says how far items are from what the projections of a revision have learned:
// those that came since the revision before, or of revision 1 those that it was trained
// on. Where it grows from one revision to the next, and more so against revision 1, the
// data moves away from the model: train again. It is measured on a sample.
type Drift struct {
	Items int `json:"items"` // number of items that were measured
	// Trained: the projections had learned from these items, so that they are nearer
	// than new ones would be.
	Trained    bool                     `json:"trained,omitempty"`
	Modalities map[string]ModalityDrift `json:"modalities"` // by name; those that any of the items has
}

// A ModalityDrift is the drift of the features of one modality.
type ModalityDrift struct {
	Items    int `json:"items"`    // measured items that have the modality
	Labelled int `json:"labelled"` // of these, items with a label that the model knows
	// Far counts the items that are so far from everything that the model has learned from
	// that they have no direction in code space, and as queries find nothing.
	Far int `json:"far,omitempty"`
	// Residual is the sum of |g - z|^2 over the labelled items as a share of that of |g|^2:
	// g is what projections of an item are to learn (model.Model.LabelAim), z its projection.
	// It is 0 if they give all of it, 1 if they say nothing, and nil without labelled items.
	Residual *float64 `json:"residual,omitempty"`
	// Offset is of a model that was learned without labels: |mean of z|^2 over the items as a share of
	// the mean of |z|^2. Items like those of the training have a mean near 0: of n of them Offset is
	// mostly below 3/n. It is 1 where all projections are the same. Nil if all items are far.
	Offset *float64 `json:"offset,omitempty"`
	// MAP is the mean average precision, expected over ties, of the labelled items as
	// queries by this modality among each other: each half of them searches the other half,
	// which has the codes of its labels. An item that shares no label with that half is no
	// query. It compares between revisions as far as their items have the same mixture
	// of labels. Nil with fewer than 16 queries.
	MAP *float64 `json:"map_tie,omitempty"`
	// Nearest says how far the nearest item is from these items as queries: from the code
	// of the projection to the nearest stored code of another item. If the space has codes
	// for each target modality, each of the others is searched.
	Nearest *Distances `json:"nearest,omitempty"`
	// Balance is the balance of the codes of the projections; nil if all items are far.
	*Balance
	// BitBalance, ConstantBits and Sampled are those of Balance, and 0 where that is nil.
	// JSON has them once, by Balance: what is decoded from JSON is read there.
	BitBalance   float64 `json:"-"`
	ConstantBits int     `json:"-"`
	Sampled      int     `json:"-"`
}

// A RevisionDrift is the drift that was measured when a revision was made.
type RevisionDrift struct {
	Revision uint32 `json:"revision"` // of the space; 1 is the training
	Drift
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

// Balance says how well codes use their bits. BitBalance and ConstantBits are defined as
// those of model.Report.
type Balance struct {
	// BitBalance is the mean over the bits of |mean over the items of the bit as
	// +-1|: 0 where every bit splits the items in halves, 1 where all are constant. Of
	// n items it is seldom below 0.8 / sqrt(n).
	BitBalance   float64 `json:"bit_balance"`
	ConstantBits int     `json:"constant_bits"` // in which no two items differ
	// Sampled is the number of items that were looked at; 0 if all were.
	Sampled int `json:"balance_sampled,omitempty"`
}
