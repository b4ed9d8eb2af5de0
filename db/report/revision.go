package report

import "time"

// RevisionInfo is what there is to tell of a revision of a space: of revision 1, which
// is the model as it was trained, or of what an update has made of the projections.
type RevisionInfo struct {
	Revision uint32    `json:"revision"`
	Parent   uint32    `json:"parent,omitempty"` // that it was made from; 0: none
	Created  time.Time `json:"created"`
	Pinned   bool      `json:"pinned,omitempty"` // it is kept however old it gets

	// As in Update: who taught, "restored" where the revision has the projections of its
	// parent; which modality led or was tried for items without labels; and why these
	// were adopted or not. Empty of revision 1.
	Teacher string `json:"teacher,omitempty"`
	Lead    string `json:"lead,omitempty"`
	Reason  string `json:"reason,omitempty"`

	// Items that have taught since the revision before, with known labels and without,
	// and those whose teaching was taken back.
	Items      int `json:"items"`
	Labelled   int `json:"labelled"`
	Unlabelled int `json:"unlabelled"`
	Forgotten  int `json:"forgotten"`

	// Residual says, by modality, how well the projections fit all that have taught
	// (model.Residual): 0 where they give every code, 1 where they say nothing.
	Residual map[string]float64 `json:"residual,omitempty"`
	// Drift says how far the items that came were from the projections before they
	// taught; of revision 1 how far those are that it was trained on, or that had taught
	// when Reindex made it. Nil where nothing could be measured.
	Drift *Drift `json:"drift,omitempty"`

	Bytes    int64  `json:"bytes,omitempty"`    // of its model, as it is stored
	Checksum string `json:"checksum,omitempty"` // CRC-32C of that, 8 hexadecimal digits
}
