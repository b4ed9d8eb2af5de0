// Package jsonform has the JSON forms in which items and answers leave the program: those of
// --json, of files of items, and of the API of explore.
//
// It imports package db for the values, and no other package of the command line. Its types
// hold no state; a form aliases the value that it was made from.
//
// Invariant: the names are a contract with scripts. Names may be added, and none changes. The
// scripts of the verbs (cmd/fddhdb/testdata/script) and the tests of explore check them.
package jsonform
