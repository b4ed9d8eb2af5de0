// Package instant has the times of fields: microseconds since 1970-01-01T00:00:00 in UTC, in an
// int64, and their text by RFC 3339. The codec, the expressions of filters and the readers of files
// agree on both here.
//
// These are functions of their arguments: nothing here asks a clock.
package instant
