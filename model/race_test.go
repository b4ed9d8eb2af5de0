//go:build race

package model

// raceEnabled shrinks the tests that only repeat at size what others check.
const raceEnabled = true

// deterministicProcs are numbers of processors that give the same bytes.
var deterministicProcs = []int{1, 5}
