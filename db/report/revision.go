package report

import "time"

// RevisionInfo describes a revision of a space. Revision 1 is the model as it was trained;
// each later one is what an update has made of the projections.
type RevisionInfo struct {
	Revision uint32    `json:"revision"`         // number, from 1
	Parent   uint32    `json:"parent,omitempty"` // revision that it was made from; 0: none
	Created  time.Time `json:"created"`
	Pinned   bool      `json:"pinned,omitempty"` // it is kept however old it gets

	// As in db.Update: who taught, or "restored" if the revision has the projections of its parent, or
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
