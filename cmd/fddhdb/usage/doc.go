// Package usage formats the help texts of a program with verbs, and makes the errors for a command line with
// an unknown verb, an unknown flag, or a flag without its value. The programs fddhdb and fddhdb-cluster share
// it.
//
// It knows trees of verbs (cobra) and no verb by name. It prints nothing by itself, holds no state and starts
// no goroutine.
//
// Invariant: a mistake is an error of package exit for a wrong command line, and says what to do: the name
// that was most likely meant, or where the help is.
package usage
