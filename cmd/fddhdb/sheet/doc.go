// Package sheet makes contact sheets of the answers to queries: one file of HTML or one PNG, a
// row a query, with the pictures of the hits or the text that they have.
//
// It reads items by package db and pictures from one folder, and writes one file; it imports
// chart for the typeface, and no verb.
//
// Invariants: no picture costs more memory than its limits say, whoever made it; no file
// outside of the folder is opened, whatever an item names; nothing of an item gets into the
// HTML unescaped; the file is there whole or not at all. picture_test.go proves the first
// two (FuzzThumbnail), the tests of search the others.
package sheet
