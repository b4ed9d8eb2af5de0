// Package jsontext scans JSON that is mostly numbers: a line of a .jsonl file at a
// time, without a copy and without a value for what is not asked for.
//
// It takes what encoding/json takes and refuses what it refuses, but that text has to be
// UTF-8 and that numbers are read as float32, the nearest one, an order of magnitude
// faster. It accepts names that come twice in an object: its users check for them.
package jsontext
