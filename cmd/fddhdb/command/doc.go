// Package command is the command line of fddhdb, with a file for each verb.
//
// A function declares each verb, with its help and flags, by env.verb. The run of a verb reads its flags,
// opens a database by verb.look or verb.change, calls package api and prints, by verb.tell or list. verb.go
// has what all of them share. Besides files, a verb touches only its env: tests run verbs in process and read
// their output. The packages beside this one are exit (errors and exit codes), term (printing), outfile and
// source (files out and in), picture, shell and explore. None of them imports
// a verb.
//
// One goroutine runs a verb; Signals of package shell ends it.
//
// Invariant: the --json output of verbs, their flags and the exit codes are a contract
// with scripts. Text output is for people and may change. TestContract checks verbs and
// flags, and the scripts in cmd/fddhdb/testdata the output.
package command
