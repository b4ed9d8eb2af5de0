// Embeddings searches 20,000 vectors that have no labels: at once, exactly, then by an index, with the
// recall that is asked for, which it compares with the exact answers; with a filter; and it finds
// vectors that are nearly the same as one that is stored.
//
// The vectors are generated. They look like those of a sentence encoder in what matters to an index:
// topics of very different sizes, noise of each topic's own, a common offset, length 1. Bring your own
// in their place: all that the database sees of them is a slice of float32.
//
//	go run ./examples/embeddings
//
// The program imports db. TestMainRuns runs it.
package main
