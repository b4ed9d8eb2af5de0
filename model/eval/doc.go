// Package eval measures how well codes retrieve: mean average precision and curves of rankings by Hamming
// distance ([Evaluate]) or by projections ([EvaluateAsymmetric]). An item is relevant to a query if they
// share a label.
//
// The figures are the same to the last bit for any number of processors. The package knows no models. All
// items of one label set share one code, so a ranking by distance has huge ties: [Metrics] reports MAP in row
// order and its expectation over them.
package eval
