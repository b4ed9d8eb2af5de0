// Package usage words what a program of verbs says of itself: the help texts of its verbs, and what is wrong with a
// command line that names a verb or a flag that is not there. The programs fddhdb and fddhdb-cluster speak with one
// voice through it.
//
// It knows trees of verbs (cobra) and no verb by name. It prints nothing by itself, holds no state and starts no
// goroutine.
//
// Invariant: a mistake is an error of package exit for a wrong command line, and says what to do: the name that was
// most likely meant, or where the help is.
package usage
