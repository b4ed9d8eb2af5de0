// Package outfile has the files that a verb makes: either all of them get their names,
// or none does. It imports internal/inside, which knows the folders of databases, and
// exit. One goroutine uses a Set.
//
// Invariants: a file is complete or unchanged, also after a failure or a kill; two
// names of one file are one; nothing is written into a database. outfile_test.go proves
// each.
package outfile
