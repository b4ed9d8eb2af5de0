// Package jsonform has the JSON forms in which schemas, answers and statistics leave the program: those
// of --json, and of the API of explore. An item has its own, see db.Item.MarshalJSON.
//
// It imports package db for the values, and no other package of the command line. Its types
// hold no state and start no goroutine; a form aliases the value that it was made from.
//
// Invariant: the names are a contract with scripts. Names may be added, and none changes. The
// scripts of the verbs (cmd/fddhdb/testdata/script) and the tests of explore check them.
package jsonform
