// Package jsontext scans JSON that is mostly numbers, such as a line of a .jsonl file. It copies nothing and
// makes no value that its caller does not ask for.
//
// It accepts and refuses the same texts as encoding/json, with two exceptions: text has to be UTF-8, and
// numbers are read as the nearest float32, an order of magnitude faster. It accepts names that come twice in
// an object; callers check for them.
//
// The scanner is our own because tokens of a library halve the speed for vectors. With tokens of
// encoding/json/jsontext (go-json-experiment/json 1.27.2) and numbers read by this package, lines of vectors
// take 2.2 to 2.7 times the CPU time, and items with two vectors of 128 numbers 1.7 to 1.8 times. The library
// scans each array before its numbers are read. This scan alone takes .8 of the time in which this package
// scans and reads. Lines without vectors differ less: 1.2 times with codes, .9 to 1 with payloads, .75 with
// escaped strings. Other libraries take 1.4 to 2.2 times the time for an array of 128 numbers, and
// encoding/json 24 times. The one at 1.4, jsonlite, does not check the order of its tokens.
//
// The package imports matrix for its errors. A [Scanner] belongs to one goroutine. The tests compare every
// value and every refusal with encoding/json, and every number with strconv (TestNumbersAreRoundedOnce).
package jsontext
