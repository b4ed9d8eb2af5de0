// Package chart draws figures of experiments as SVG. It has the parts of figures: panels, curves, axes, heat
// maps.
//
// It imports term for the spelling of text, and no experiment: an experiment passes it the numbers and the
// target.
//
// Invariants: equal figures give equal bytes; curves are told apart even without colour; texts do not
// overlap. The tests of the packages that draw prove them.
package chart
