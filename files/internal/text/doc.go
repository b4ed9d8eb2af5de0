// Package text reads .jsonl and .csv: vectors, whole items, and tables whose columns have names of their own.
//
// There is one scanner of lines (Lines), one of CSV (Records) and, in package jsontext, one of JSON. A reader
// holds one line or record, whose length is bounded. Text is UTF-8; a byte order mark at its start and CRLF
// line ends are accepted. Files are read twice: columns, and where rows end, are known only at the end of the
// file.
package text
