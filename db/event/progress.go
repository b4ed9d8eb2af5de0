package event

// A Progress is called while a long operation works: done of total are done in the stage.
// total is 0 while it is unknown. The option that takes a Progress names the stages, and
// the unit of each: items, records, bytes or objects. A nil Progress is not called.
//
// Calls come one at a time, from any goroutine unless the option names one. The operation
// waits for each call, so a Progress should return at once. It may cancel the context of
// the operation.
//
// If it panics it is not called again. The operation ends as if its context had been
// cancelled, and then the call panics in the goroutine of its caller, with an error that has
// the stack of the Progress.
type Progress func(stage string, done, total int64)
