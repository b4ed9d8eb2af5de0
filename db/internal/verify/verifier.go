package verify

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/report"
)

// Options say how closely to look.
type Options struct {
	Deep      bool           // make codes, projections and statistics again, and compare
	Progress  event.Progress // hears how many records have been read, of an unknown total; may be nil
	StoreOnly bool           // do not compare marker and side file with the store
}

// A verifier looks at one state of a store. It is for one goroutine.
type verifier struct {
	ctx    context.Context
	snap   *pebble.Snapshot           // the state that is verified; belongs to Store
	opt    Options                    // of the call
	report func(report.Finding) error // gets findings; an error ends the verification

	// err is the first error, of report, of ctx or of a helper. It sticks: all loops end when
	// they see it, and nothing is reported any more. Damage to what is stored is no error.
	err   error
	done  report.Verification // what has been looked at so far
	stage string              // for progress; see at

	unread record.KeyRanges            // keys that could not be read or decoded; see lose and skip
	known  map[uint32]*knownCollection // by number: collections that have been looked at, for strangers
}

// at begins a stage of progress, and names it.
func (v *verifier) at(format string, args ...any) {
	v.stage = fmt.Sprintf(format, args...)
	v.progress()
}

// progress tells how many records have been read.
func (v *verifier) progress() {
	if v.opt.Progress != nil {
		v.opt.Progress(v.stage, int64(v.done.Records), 0)
	}
}

// look tells how many records have been read, and ends the verification if the context has ended.
func (v *verifier) look() {
	v.progress()
	if v.err == nil {
		v.err = v.ctx.Err()
	}
}

// found reports something that is wrong with the record under key, nil if it has none. It
// does nothing once the verification has ended.
func (v *verifier) found(f report.Finding, key []byte) {
	if v.err != nil {
		return
	}
	f.Key = hex.EncodeToString(key)
	v.done.Findings++
	v.err = v.report(f)
}
