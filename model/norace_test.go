//go:build !race

package model

// raceEnabled shrinks the tests that only repeat at size what others check.
const raceEnabled = false

// deterministicProcs are numbers of processors that give the same bytes, one of them twice.
var deterministicProcs = []int{1, 5, 5}
