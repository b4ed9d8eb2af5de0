// Package sheet makes contact sheets of answers to queries: one file of HTML or one
// PNG, a row a query, with the pictures or texts of the hits.
//
// It reads items by package db and pictures by package picture, and writes one file. It
// imports chart for the typeface, and no verb. One goroutine uses a Sheet.
//
// Invariants: no picture takes more memory than its limits allow, whatever its bytes;
// nothing of an item gets into the HTML unescaped; the file is whole or missing.
// picture_test.go proves the first (FuzzThumbnail), the tests of search the others.
package sheet
