// Package jsonform has the values of which the JSON of items and hits is made, where
// encoding/json has no form for them or another one: codes, scores that may be NaN, fields whose
// type must come back, vectors that are dense or sparse. Package db, which says what the objects
// are, makes them of these.
//
// These are functions of their arguments. What is encoded comes back as it was, but for
// times, which come back as text (db/json_test.go).
package jsonform
