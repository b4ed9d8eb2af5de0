// Package picture finds the files of pictures that items name, below one folder, for explore; decodes
// pictures for their hashes; and makes contact sheets of answers to queries: one self-contained file of HTML,
// a row a query, with the pictures or texts of the hits.
//
// It reads items of package db, and imports no verb. A Folder is safe for concurrent use; a Sheet belongs to
// one goroutine.
//
// Invariants: no file outside of the folder is opened, whatever an item names, and no pipe
// (picture_test.go); nothing of an item gets into the HTML unescaped (TestTextIsNoMarkup); a sheet is whole
// or missing (the tests of search).
package picture
