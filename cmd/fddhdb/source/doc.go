// Package source reads files that a verb takes: vectors, codes, labels, keys, fields and whole
// items, each a Source whose row i says something of item i, and several of them together, a
// row ahead of the verb. It also reads what is typed in place of a file.
//
// It imports the formats of files (codec and the packages below it), package db for what rows
// become, term and exit for the words of errors, and no verb.
//
// Invariants: a row that is wrong (RowError) costs that row only, and the rows after it stay
// side by side; an error names the file and the line or row; a row that Pipeline hands out
// shares no memory with another. labels_test.go, keys_test.go, fields_test.go and fuzz_test.go
// prove the first two, the tests of import the last.
package source
