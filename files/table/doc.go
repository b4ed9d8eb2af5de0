// Package table reads files of whole items: keys, vectors, labels, fields and payloads
// together, as .jsonl, .csv and, by package parquet, as .parquet.
//
//	r, err := table.Open("items.jsonl")
//	if err != nil {
//		return err
//	}
//	defer r.Close()
//	var item table.Item
//	for {
//		err := r.Next(&item)
//		if err == io.EOF {
//			break
//		}
//		if err != nil {
//			return err // "items.jsonl: line 18: vectors: "image": number 3: ..."
//		}
//		use(&item)
//	}
//
// # Format
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
// Each member may be missing or null. A sparse vector has the columns of its numbers,
// in any order and each once, and the numbers. A payload is base64, a code hexadecimal.
// The members code_from, codes and modalities are read and ignored: a database adds
// them to exported items. Any other name is refused, and so is a name that comes twice.
//
// # Tables
//
// Other programs name columns as they like. A .jsonl file is a Table if its first 100
// lines have other members than items have, not all of them objects, and neither the
// object vectors nor fields:
//
//	{"id": 7, "embedding": [0.25, 1], "tags": ["cat"], "price": 9.5}
//
// So is every .csv, whose first line has the names of the columns. In its cells a list is
// written as in JSON, or as Python writes a list of strings; an empty cell is no value,
// and neither is null, NaN or, of vectors, an empty list in .jsonl. Columns describes the
// columns. The caller decides what they become, and Map takes that.
//
// # Untrusted bytes
//
// A file may come from anywhere. No decoder panics. A reader holds one line and its
// contents, and a line has at most 64 MiB. Errors about a file are of type
// *files.Error. FuzzItems and FuzzTable read any bytes, and TestLinesThatAreBad and
// TestRowsThatAreWrong have what can be wrong with a line. A table has at most 10,000
// columns.
//
// # Imports and concurrency
//
// The package imports files and files/internal/jsontext. It starts no goroutine and
// has no lock: a Reader belongs to one goroutine at a time.
//
// # Caveats
//
// A file must not change while it is read. It must be a regular file, not a pipe: its
// lines are counted first.
package table
