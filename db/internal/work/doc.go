// Package work runs functions on several goroutines and waits for them: nothing that it
// starts goes on after it has returned. It knows nothing of databases, has no state,
// and imports the standard library only.
package work
