package checker

import "time"

// A Fault is a fault of the cluster with its duration.
type Fault struct {
	What       string
	Begin, End time.Duration // by the clock of the history
}

// Unexplained returns the patient operations that got no answer although there was no fault while they
// waited, or shortly before.
func Unexplained(ops []Op, faults []Fault, after time.Duration) (all []*Op) {
	for i := range ops {
		o := &ops[i]
		if !o.Patient || o.Result != Failed && o.Result != Unknown {
			continue
		}
		explained := false
		for _, f := range faults {
			if f.Begin <= o.End && o.Begin <= f.End+after {
				explained = true
				break
			}
		}
		if !explained {
			all = append(all, o)
		}
	}
	return all
}
