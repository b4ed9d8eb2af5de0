// Package shell is the shell that fddhdb DIR opens. It runs lines of verbs, from a
// dialogue, a script or -c, on a database that stays open, with history, completion, a
// pager and commands that begin with a dot. It also completes words for the scripts of
// bash, zsh and fish, cuts lines into words, and ends the process after signals; in a
// dialogue interrupts are for the running line.
//
// It knows no verb: a Host gives it the command line, as a tree of cobra, and the
// database. It imports term, outfile and exit.
//
// One goroutine runs the lines. Others wait for the terminal (dialogue.ask), for
// standard input (stoppable) and for signals (Signals.watch). Signals has a lock of its
// own.
//
// Invariants: nothing in completion, history or editing of lines ends the shell
// (verbs_test.go); a line ends within seconds of Ctrl-C, and the process within seconds
// of a signal, whatever they wait for (signals_test.go, pager_test.go); quoted words
// are read back unchanged (FuzzSplitWords), and a completion replaces exactly its word
// (FuzzComplete).
package shell
