//go:build !race

package model

// raceEnabled shrinks the tests that only repeat at size what others check.
const raceEnabled = false
