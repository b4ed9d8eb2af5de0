// Field tries the built command under the conditions of real use: on a tmpfs that is
// really full, with bits flipped in its files, with signals, with limits of the shell,
// on a slow disk, with /dev/full as output, beside other processes and with wrong
// clocks. Nothing is injected into the program. The tests of package db inject faults,
// but only in places where they expect them.
//
//	go -C test run ./field                           # a minute
//	go -C test run ./field -long                     # all combinations, some hours
//	go -C test run ./field -run 'damage|signals' -seed 7
//
// Every command has a time limit, after which it and its children are killed, so nothing
// hangs the run. Random moments, places and orders follow from the seed, which is printed.
// A finding is printed with the command line, and its folder is kept: the state before the
// command, the state after it, and what the command said.
//
// It needs Linux. Full and slow disks are mounted in a namespace of their own, which goes
// when the run ends; where that is not permitted, these cases are skipped, and say so.
//
// # Imports and invariants
//
// The program imports what makes its inputs, and Pebble's reader of tables to find the
// places of records; never package db. The attempts of a scene run in goroutines, each
// in a folder of its own. They share the counts and findings of a trial, and the
// baselines of the databases, each of which is computed once; the mutex mu of trial and
// stocks guards these. TestField runs commands with known faults and proves that the
// scenes find them.
package main
