// Field tries the built command where it will be used: on a tmpfs that is really full, with
// bits flipped in its files, with signals, limits of the shell, a slow disk, /dev/full,
// several processes and wrong clocks. Nothing is injected into the program; what the tests
// of package db inject, they inject where they expect a fault.
//
//	go run ./internal/field                           # a minute
//	go run ./internal/field -long                     # all combinations, some hours
//	go run ./internal/field -run 'damage|signals' -seed 7
//
// Every command has a time limit, after which it and its children are killed, so nothing
// hangs the run. Random moments, places and orders follow from the seed, which is printed.
// A finding is printed with the command line, and its folder is kept: the state before the
// command, the state after it, and what the command said.
//
// It needs Linux. Full and slow disks are mounted in a namespace of their own, which goes
// when the run ends; where that is not permitted, these cases are skipped, and say so.
package main
