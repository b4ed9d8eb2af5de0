// Package sum adds up over training items what a training needs: label sets, moments of vectors, sketches of
// the features of labels, and statistics.
//
// A [Pass] says what to add up. A [Reader] does it where a [Source] has the items; an [Engine] does it where
// they lie in many places, by [Pass.Sum] and [Pass.Merge]. Sums are made in one fixed tree ([LeafItems]). So
// the result has the same bits for any number of processors and places: TestTree, and TestTrainOver of
// package fit.
//
// A Pass is immutable and safe for concurrent use. All else belongs to one goroutine at a time. The errors
// about an item are those of package model, and [ErrNoLabels].
package sum
