package event

// Progress hears how far something that takes long has come: done of total, in the stage
// that it is in; total is 0 while it is not known. The option that takes one names its
// stages, and what is counted in each: items, records, bytes or objects. A nil Progress
// hears nothing.
//
// Calls come one at a time, from any goroutine unless the option says from which. The work
// waits for each, so that a Progress should return at once. It may cancel the context of
// the work.
type Progress func(stage string, done, total int64)
