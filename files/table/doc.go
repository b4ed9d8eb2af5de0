// Package table describes files of whole items: keys, vectors, labels, fields and payloads together. Packages
// files and parquet open them.
//
// # Items
//
// A .jsonl file has an object a line, in UTF-8:
//
//	{"key": "cat.jpg",
//	 "vectors": {"image": [0.25, 1], "text": {"i": [3, 17], "v": [1.5, 2]}},
//	 "labels": ["cat"],
//	 "fields": {"year": 1999, "title": "A cat"},
//	 "payload": "AAEC",
//	 "code": "0102"}
//
// Each member may be missing or null. A sparse vector has the columns of its numbers, in any order and each
// once, and the numbers. A payload is base64, a code hexadecimal. The members code_from, codes and modalities
// are read and ignored: a database adds them to exported items. Any other name is refused, and so is a name
// that comes twice.
//
// # Tables
//
// Other programs name columns as they like. A .jsonl file is a Table if its first 100 lines have other
// members than items have, not all of them objects, and neither the object vectors nor fields:
//
//	{"id": 7, "embedding": [0.25, 1], "tags": ["cat"], "price": 9.5}
//
// So is every .csv, whose first line has the names of the columns, and every .parquet. In the cells of a .csv
// a list is written as in JSON, as Python writes a list of strings, or as numpy prints an array. An empty
// cell is no value, and neither is null, NaN or, of vectors, an empty list. Columns describes the columns.
// Nearly all of the first thousand values decide that a column has vectors: one in ten may be a mistake,
// which is an error of its row. The caller decides what columns become, and Map takes that. Several columns
// of numbers may become one vector.
//
// A format (Rows) says what the values of a row are and reads them (Cell). What a column holds (Look), and
// what a value becomes (Table), is said here, for all formats.
//
// # Untrusted bytes
//
// A file may come from anywhere. No decoder panics. A reader holds one line or page and its contents, and a
// line has at most 64 MiB. A table of text has at most 10,000 columns.
package table
