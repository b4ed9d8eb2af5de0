// Package textform has the text forms in which schemas, items, hits and counts leave programs for people, as
// package jsonform has those for scripts; and the form in which people write a field of a schema.
//
// It prints by package term and imports package db for the values. It holds no state and starts no goroutine.
//
// Invariants: text from a database goes through term.Plain; a cell of a field or of a count has in data the
// value that JSON has. The scripts of the verbs (cmd/fddhdb/testdata/script) check both.
package textform
