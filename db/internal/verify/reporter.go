package verify

import (
	"fmt"

	"github.com/fddhdb/fddhdb/db/report"
)

// A reporter reports what is wrong with the records of a collection, or of one space of it. The
// verifiers of both have one; that of a space hides that of its collection.
type reporter struct {
	to          *verifier
	collection  string // name
	countersKey []byte // of the collection
	space       uint32 // number; 0: the findings are about the collection
}

// ofSpace returns a reporter for space number id of the collection.
func (r reporter) ofSpace(id uint32) reporter {
	r.space = id
	return r
}

// bad reports that something is wrong with the record under key, which what names.
func (r reporter) bad(what string, key []byte, format string, args ...any) {
	f := r.about(what)
	f.Problem = fmt.Sprintf(format, args...)
	r.to.found(f, key)
}

// missing is bad for a problem that is the fault of the record under key: it is not there, or
// does not say what it should. If the key is lost that has been reported already, and missing
// does nothing.
func (r reporter) missing(what string, key []byte, format string, args ...any) {
	if !r.to.lost(key) {
		r.bad(what, key, format, args...)
	}
}

// badCounters reports that the counters of the collection are wrong.
func (r reporter) badCounters(format string, args ...any) {
	r.bad("counters", r.countersKey, format, args...)
}

// about returns a finding about the record that what names, without a problem and a key: a walk
// fills them in.
func (r reporter) about(what string) report.Finding {
	return report.Finding{Collection: r.collection, Space: report.Space(r.space), Record: what}
}

// begin sets the stage of progress: the records that are looked at from now on.
func (r reporter) begin(what string) {
	if r.space == 0 {
		r.to.at("collection %s: %s", r.collection, what)
	} else {
		r.to.at("collection %s, space %d: %s", r.collection, r.space, what)
	}
}
