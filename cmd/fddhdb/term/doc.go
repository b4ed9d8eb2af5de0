// Package term is what verbs print with: results as tables, sentences or JSON in the mode
// that the user wants, remarks and errors, progress, and how numbers, times and text from a
// database are spelt for people.
//
// It knows no verb and no database, and imports no other package of this module. A verb
// runs within Scope, which ends what it prints, also after an error. A Printer is for one
// goroutine; its Progress may be told of steps by others, one at a time.
//
// Invariants: results go to stdout and everything else to stderr; text from a database
// cannot move the cursor or begin a line (Plain); nothing is coloured and no bar is drawn
// elsewhere than on a terminal (terminal_unix_test.go, progress_test.go); in csv and json
// the output is one whole document, however it is written (mode_test.go).
package term
