// Package chart draws figures for files, .svg or .png, and lines of blocks for
// terminals. It has the parts of figures (panels, curves, axes, heat maps), and two
// whole figures: of an evaluation and of spaces.
//
// It imports package db for these two, term for the spelling of text, and no verb: a
// verb passes it the numbers and the target.
//
// Invariants: equal figures give equal bytes; curves are told apart even without
// colour; texts do not overlap; no text from a database gets into a figure unescaped.
// They are proved by retrieval_test.go, spaces_test.go, axes_test.go, and by the tests
// of the packages that draw (experiment, measure).
package chart
