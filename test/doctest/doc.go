// Package doctest runs what stands in README.md and docs/*.md: whoever changes the
// program or a document learns where they have come apart.
//
//	go -C test test ./doctest                # compare
//	go -C test test ./doctest -run Documents/TUTORIAL
//	go -C test test ./doctest -args -update  # write what is printed into the documents
//
// Each document has a folder of its own, in which its blocks run one after the other, with
// the fddhdb of this clone; variables and files stay from block to block. To add a session,
// write the commands alone and run the test with -update.
//
//   - ```console holds commands, each after "$ " and continued after "> ", and what they
//     print, on stdout and stderr. It has to be what they print now, but for what differs
//     from run to run: durations, sizes in bytes, dates, ids, checksums and cursors,
//     whatever they are, and other numbers with a decimal point to two units of the last
//     digit, or 1 in 1,000, for processors round differently. Runs of spaces count as one. A
//     line "..." stands for any lines, and "..." in a line for any text.
//     A command may fail only where the last line shown is an error, "fddhdb: ...".
//   - ```sh holds commands without what they print. All have to succeed.
//   - ```go holds a program, from "package main" on, or a fragment. All are compiled. A
//     program is run by "$ go run ." in the next sessions, or else where it stands. Fragments are
//     bodies of functions that may use ctx, d (a *db.DB), c (a *db.Collection), dir and err.
//
// The examples that are named in examples (programs_test.go) are commands; "go install" looks whether there
// is such a program. Folders under /mnt and /srv, as arguments of fddhdb, are in the folder of the document.
// Other blocks, as ```text or without a language, are not looked at.
//
// Comments, which readers do not see, before a block:
//
//	<!-- not run: WHY -->     the block is only looked through: its shell commands have to parse,
//	                          with verbs and flags that fddhdb has, and packages, tests and
//	                          benchmarks that are there
//	<!-- run
//	COMMANDS
//	-->                       commands that run here, as those of a ```sh block
//	<!-- data: NAME -->       the files of ../shared/data/NAME are in the folder from here on;
//	                          the rest of the document is skipped where they are absent, and
//	                          without -long or -update, as it trains on them
//
// Links between the documents, and to files and headings in them, are followed as well.
// With -short the blocks are parsed and the links followed, and nothing is run.
package doctest
