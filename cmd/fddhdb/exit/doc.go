// Package exit decides with which code the process ends, and words the error that it ends
// with. An error says by its type whether the command line has to change (Usagef), or
// something else has (Failedf); stored data that is damaged has a code of its own.
//
// It imports package db and its backups for their sentinels alone, and nothing of the
// command line: every package beside it may return these errors.
//
// Invariant: the codes and what decides on them are a contract with scripts. exit_test.go
// lists an error of every kind with its code and its text.
package exit
