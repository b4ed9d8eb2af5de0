// Manpage writes docs/man/fddhdb.1, the manual page, from the texts of fddhdb help. Run it
// in the root of the repository:
//
//	go run ./internal/manpage
//
// It imports cmd/fddhdb/command, which has the texts and makes the page. TestManPage of
// that package fails if the file differs from them.
package main
