// Package command is the command line of fddhdb, with a file for each verb.
//
// A function declares each verb; package run says how it runs. Besides files, a verb touches only its
// run.Env: tests run verbs in process and read their output. Package ingest has the verbs that bring items
// in. The other packages beside this one are exit (errors and exit codes), term (printing), outfile and
// source (files out and in), picture, shell and mcp. None of them imports a verb.
//
// Invariant: the --json output of verbs, their flags and the exit codes are a contract with scripts. Text
// output is for people and may change. TestContract checks verbs and flags, and the scripts in
// cmd/fddhdb/testdata the output.
package command
