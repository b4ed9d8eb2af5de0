// Package seed decides where the randomness of tests begins: property tests, random
// histories, random damage, crashes, kills and simulations.
//
// By default every test has a fixed seed, so that a test that has passed passes again. The
// flag -seed moves the seeds of all tests of a package at once:
//
//	go test ./mih -args -seed new                  # a new seed
//	go test ./mih -args -seed 123                  # the seed that a failure has named
//	FDDHDB_SEED=new go test -count=1 ./...         # a new seed for every package
//
// A test that fails names its seed, and says how to repeat it. Tests with package rapid
// follow the flag, too: it sets their own flag -rapid.seed.
//
// The package imports rapid and the standard library. The seed is set by init and
// flags, before tests run, and is only read after that: TestFrom.
package seed
