// Package term prints for verbs: results as tables, sentences or JSON in the mode that
// the user wants, remarks and errors, and progress. It also spells numbers, times and
// text from a database for people.
//
// It knows no verb and no database, and imports no other package of this module. A verb
// runs within Scope, which completes its output, also after an error. A Printer belongs
// to one goroutine. Any goroutine may report steps to its Progress, which has one of its own
// from the first step to End.
//
// Invariants: results go to stdout and everything else to stderr; what people see
// cannot move the cursor, whatever it says, and text in a cell cannot begin a line
// (printer_test.go); colours and bars appear only on a
// terminal (terminal_unix_test.go, progress_test.go); in csv and json the output is one
// whole document, however it is written (printer_test.go).
package term
