// Package exit decides the exit code of the process, and words the error that it ends
// with. The type of an error says whether the command line is wrong (Usagef) or
// something else (Failedf). Damaged stored data has a code of its own.
//
// It imports package db and its backups for their sentinels only, and nothing of the
// command line, so every package of it may return these errors. It starts no goroutine.
//
// Invariant: the codes, and the rule that chooses one, are a contract with scripts.
// exit_test.go lists an error of every kind with its code and its text.
package exit
