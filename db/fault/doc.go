// Package fault has the errors of a database: those to test for with errors.Is, which package
// db names, too, those that say more, for errors.As, and the few functions that word them.
//
// Every error of package db begins with "fddhdb: ", says what it is about, where, and what to
// do, and wraps one of the errors here if a program may want to act upon it. An error is
// worded where the record, the file or the argument is known, and no more than once: Annotate
// leaves alone what is worded. Programs need the variables and the types only.
//
// It imports the packages below a database for the errors that these give, and holds no state.
package fault
