// Package paper repeats the experiments of the paper. A lab trains many times, with the settings that a kind
// varies, measures each training against queries, and prints and draws the rows.
//
// Each training makes a space of the collection, which is dropped when it has been measured. One goroutine
// trains and prints.
//
// Invariants: a row is the mean over the seeds, and equals the results of fddhdb train and eval with its
// settings; an impossible setting is left out with a reason and costs no other row. command_test.go proves
// these, figures_test.go that equal rows give equal figures.
package paper
