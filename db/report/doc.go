// Package report has the structs that calls of a database return as reports, with their names
// in JSON. They compute at most from their own fields, belong to the caller who gets them, and
// do not change afterwards. They stand here so that the packages below db can fill them in.
//
// It imports db/event and model, whose figures are parts of some reports. It starts no
// goroutine and has no lock. TestResultsAreJSON in db/json_test.go sees to it that each can be
// written as JSON, under names of JSON.
package report
