// Package fault has the errors of a database: sentinels to test for with errors.Is,
// which package db also exports, types with details for errors.As, and the few
// functions that make them.
//
// Every error of package db begins with "fddhdb: " and says what it is about, where,
// and what to do. It wraps one of the errors here if a program may want to act upon it.
// An error is worded once, where the record, the file or the argument is known:
// Annotate does not change an error that is worded.
//
// Which function makes an error: Invalid for a mistake of the caller, NotFound for a name or
// key that there is none of, Corrupt for bytes that were read and make no sense, ReadError for
// a failed read, which may be any of damage, a missing record and a failing disk, Annotate for
// all else that comes from below.
//
// The package imports the packages below a database, whose errors it translates. It holds no
// state, and starts no goroutine. db/inject_test.go and db/corruption_test.go look at the
// errors of failures and of damage, wherever these are met.
package fault
