// Package jsontext scans JSON that is mostly numbers, such as a line of a .jsonl file.
// It copies nothing and makes no value that its caller does not ask for.
//
// It accepts and refuses the same texts as encoding/json, with two exceptions: text has
// to be UTF-8, and numbers are read as the nearest float32, an order of magnitude
// faster. It accepts names that come twice in an object; callers check for them.
//
// The package imports the standard library only. A [Scanner] belongs to one goroutine.
// The tests compare every value and every refusal with encoding/json, and every number
// with strconv (TestNumbersAreRoundedOnce).
package jsontext
