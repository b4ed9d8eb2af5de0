// Package source reads the files of verbs: vectors, codes, labels, keys, fields and whole items. Each file is
// a Source whose row i is about item i. Together reads several of them, a row ahead of the verb. What the
// columns of a table of another program become is guessed here (mapping.go). Standard input is copied to a
// file first. The package also reads values that are typed instead of a file.
//
// It imports the formats of files (codec and the packages below it), package db for rows as items, term,
// forms and exit for the words of errors, and no verb. Pipeline reads in a goroutine of its own, which
// ends before Pipeline returns. That of ReadStdin may wait for a terminal until the process ends, if the
// import is interrupted. Everything else belongs to one goroutine.
//
// Invariants: a wrong row (RowError) costs only that row, and later rows stay in step in all files; an error
// names the file and the line or row; a row of Pipeline shares no memory with another. labels_test.go,
// keys_test.go, fields_test.go and fuzz_test.go prove the first two, the tests of import the last.
package source
