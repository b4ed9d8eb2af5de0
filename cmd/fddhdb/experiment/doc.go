// Package experiment repeats the experiments of the paper: a Lab trains again and again, with
// settings that a Kind goes over, measures each training against queries, and prints and draws
// the rows.
//
// It trains by package db (Collection.EvaluateTraining), which stores nothing, and imports
// chart, term and exit, and no verb.
//
// Invariants: the collection stays as it is; a row is the mean over the seeds, and equals what
// train and eval give with its settings; a setting that cannot work is left out with a reason
// and costs no other row. The tests of the verb prove these, figures_test.go that equal rows
// give equal figures.
package experiment
