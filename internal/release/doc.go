// Release builds the archives of a release: the shell for every platform, without cgo,
// with the licence, the README, the changelog, the man page and the completions beside it,
// and a file of SHA-256 checksums.
//
//	go run ./internal/release -out dist
//
// Everything is reproducible: the same commit and the same version of Go give the same
// bytes, on any machine. Paths are trimmed, times are those of the commit, and an archive
// holds nothing else of the machine. The version is the one that Go derives from the tag
// of the commit. A working tree with changes is refused, because no commit says what was
// built. TestArchives proves that packing is reproducible, TestReleaseIsReproducible that
// building is.
//
// The program imports the standard library alone. It runs go and git.
package main
