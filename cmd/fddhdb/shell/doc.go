// Package shell is what fddhdb DIR opens: lines of verbs, from a dialogue, a script or -c, on a
// database that stays open, with history, completion, a pager and commands that begin with a
// dot. It also completes words for the scripts of bash, zsh and fish, cuts lines into words,
// and ends the process after signals, which in a dialogue are for the line that runs.
//
// It knows no verb: a Host gives it the command line, as a tree of cobra, and the database. It
// imports term, outfile and exit.
//
// One goroutine runs the lines. Others wait for the terminal (dialogue.ask), for standard input
// and for signals (Signals.watch); Signals has a lock of its own.
//
// Invariants: nothing that completes, remembers or edits lines ends the shell (guard_test.go);
// a line ends within seconds of Ctrl-C, and the process within seconds of a signal, whatever
// they wait for (signals_test.go, pager_test.go); words that are quoted are read again as they
// were (FuzzSplitWords), and a completion stands where its word began (FuzzComplete).
package shell
