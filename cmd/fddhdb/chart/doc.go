// Package chart draws figures for files, .svg or .png, and lines of blocks for terminals. It
// has the parts that figures consist of (panels, curves, axes, maps of numbers), and the two
// figures of what package db itself tells: of an evaluation, and of spaces.
//
// It imports package db for these two, term for how text is spelt, and no verb: a verb gives
// it what to draw and where to.
//
// Invariants: equal figures give equal bytes; curves keep apart without colour, too; nothing
// that is written runs into something else; no text from a database gets into a figure
// unescaped. retrieval_test.go, spaces_test.go and axes_test.go prove it, and the tests of
// those that draw (experiment, measure).
package chart
