package command

import "github.com/fddhdb/fddhdb/db"

// strip removes those parts of the items of an answer that --include does not name. A contact sheet reads
// more parts than are printed.
func strip(r *db.Result, include db.Include) {
	for i := range r.Hits {
		it := r.Hits[i].Item
		if include == 0 {
			r.Hits[i].Item = nil
		} else if it != nil {
			if include&db.IncludeLabels == 0 {
				it.Labels = nil
			}
			if include&db.IncludeFields == 0 {
				it.Fields = nil
			}
			if include&db.IncludePayload == 0 {
				it.Payload = nil
			}
		}
	}
}
