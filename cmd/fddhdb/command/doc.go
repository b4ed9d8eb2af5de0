// Package command is the command line of fddhdb: a file a verb.
//
// A verb is a function that makes a cobra.Command over an env, which is all that
// the verb may touch of the world besides files: tests run verbs in process and
// look at what they print. A verb reads its flags, opens a database, calls package db and
// prints; what several share are packages beside this one: exit (errors and exit codes), term
// (what verbs print with), outfile and source (files out and in), chart and sheet (figures and
// pictures), shell, experiment and measure. Those import no verb.
//
// Invariant: what a verb prints with --json, its flags and the exit codes are a contract
// that scripts rely on; text output is for people and may change. TestContract holds verbs and
// flags against it, the scripts in cmd/fddhdb/testdata the output.
package command
