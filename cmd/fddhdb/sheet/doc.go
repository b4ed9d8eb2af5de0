// Package sheet makes contact sheets of answers to queries: one self-contained file of HTML, a row a query,
// with the pictures or texts of the hits.
//
// It reads items by package db and pictures by package picture, and writes one file. It imports no verb. One
// goroutine uses a Sheet.
//
// Invariants: nothing of an item gets into the HTML unescaped (TestTextIsNoMarkup); the file is whole or
// missing (the tests of search).
package sheet
