// Package chart draws the curves of an evaluation as SVG.
//
// It imports package db for the figures, term for the spelling of text, and no verb: a verb passes it the
// target.
//
// Invariants: equal figures give equal bytes; texts do not overlap; no text from a database gets into a
// figure unescaped. retrieval_test.go proves them.
package chart
