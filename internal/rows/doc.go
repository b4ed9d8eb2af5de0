// Package rows reads the rows of an import a few ahead and stores them as items, in parts. It is behind
// package db/importer and the command.
//
// Sources belong together: row i of each is about item i. Together.Each reads them in a goroutine of its own,
// which ends before Each returns; everything else belongs to one goroutine.
//
// Invariants: a wrong row (Error) costs only that row, and later rows stay in step in all sources; a row
// shares no memory with another; rows are stored in order, so that Done.Rows says where to go on
// (rows_test.go, and the tests of import in cmd/fddhdb/command).
package rows
