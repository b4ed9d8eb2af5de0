// Package work runs functions on several goroutines and waits for them: nothing that it
// starts goes on after it has returned. It knows nothing of databases, has no state,
// and imports the standard library only.
//
// Parallel and ParallelBy are for many equal pieces, Together for tasks that differ and may
// wait for each other, Safely for calls whose panic must not end the process. A panic in a
// call of Parallel or ParallelBy becomes its error; Together brings it to the caller, and so
// does Hearing with one of a progress callback.
// TestParallelReturnsPanics has one at the start, in the middle and at the end.
package work
