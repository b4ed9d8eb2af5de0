// Package experiment repeats the experiments of the paper. A Lab trains many times,
// with the settings that a Kind varies, measures each training against queries, and
// prints and draws the rows.
//
// It trains by package db (Collection.EvaluateTraining), which stores nothing. It
// imports chart, term and exit, and no verb. One goroutine trains and prints.
//
// Invariants: the collection does not change; a row is the mean over the seeds, and
// equals the results of train and eval with its settings; an impossible setting is left
// out with a reason and costs no other row. The tests of the verb prove these.
// figures_test.go proves that equal rows give equal figures.
package experiment
