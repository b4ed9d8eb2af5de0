// Package oracle says what a search must find, by looking at every item, and compares
// answers of package db with that. It is for tests: package db/dbtest makes candidates of
// what a collection holds, package metamorphic of its model in memory.
package oracle
