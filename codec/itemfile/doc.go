// Package itemfile reads files of whole items: keys, vectors, labels, fields and payloads
// together, as .jsonl and, by package parquetfile, as .parquet.
//
//	r, err := itemfile.Open("items.jsonl")
//	if err != nil {
//		return err
//	}
//	defer r.Close()
//	var item itemfile.Item
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
// # Untrusted bytes
//
// A file may come from anywhere. No decoder panics. A reader holds one line and its
// contents, and a line has at most 64 MiB. Errors about a file are of type
// *vecfile.Error. FuzzItems reads any bytes, and TestLinesThatAreBad has what can be
// wrong with a line.
//
// # Imports and concurrency
//
// The package imports vecfile and codec/internal/jsontext. It starts no goroutine and
// has no lock: a Reader belongs to one goroutine at a time.
//
// # Caveats
//
// A file must not change while it is read. It must be a regular file, not a pipe: its
// lines are counted first.
package itemfile
