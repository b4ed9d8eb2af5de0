// Package work runs functions on several goroutines and waits for them: nothing that it starts
// goes on when it has returned. It knows nothing of databases, and imports the standard
// library only.
package work
