// Package oracle knows the right answer to a search, by looking at every item, and
// compares answers of package db with it. Tests use it: package db/internal/dbkit
// makes candidates of the items of a collection, package metamorphic of the items of its model in memory.
//
// It imports package db for its types and constants alone, and calls no search. It keeps no state;
// goroutines must not share an Answer while one sorts it. TestWrongAnswersAreNoticed
// proves that it finds wrong answers.
package oracle
