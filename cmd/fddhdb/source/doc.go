// Package source reads the files of verbs: vectors, codes, labels, keys, fields, texts and pictures. Each
// file is a rows.Source whose row i is about item i; package db/importer reads whole items. Standard input is
// copied to a file first. The package also reads vectors that are typed instead of a file.
//
// It imports the formats of files (codec and the packages below it), package db for rows as items, term,
// forms and exit for the words of errors, and no verb. Pictures are read by goroutines that Close ends. The
// goroutine of ReadStdin may wait for a terminal until the process ends, if the import is interrupted.
// Everything else belongs to one goroutine.
//
// Invariants: a wrong row costs only that row, and later rows stay in step in all files; an error names the
// file and the line or row. labels_test.go, keys_test.go and fuzz_test.go prove it.
package source
