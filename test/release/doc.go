// Release builds the files of a release: archives of the shell for every platform, without
// cgo, with the licence, the README, the changelog and the completions beside
// it; a wheel for Python for each platform; and a file of SHA-256 checksums of all of them.
//
//	go -C test run ./release -out ../dist
//
// Everything is reproducible: the same commit and the same version of Go give the same
// bytes, on any machine. Paths are trimmed, times are those of the commit, and an archive
// holds nothing else of the machine. The version is the one that Go derives from the tag
// of the commit. A working tree with changes is refused, because no commit says what was
// built. TestArchives and TestWheel prove that packing is reproducible, TestReleaseIsReproducible
// that building is. TestImageRuns runs what the Dockerfile makes an image of.
//
// The program imports the standard library, and the client for Python. It runs go and git.
package main
