// Package importer stores the items of a file in a collection: what the command does with fddhdb import FILE.
// The file is a table of any program, such as a .parquet of embeddings, or one that fddhdb has exported.
//
//	in := api.Folder(d, nil) // or a database that attach.Open, client.Open or cluster.Open has opened
//	schema, err := importer.Schema("photos.parquet", importer.Options{})
//	c, err := in.CreateCollection(ctx, "main", schema)
//	r, err := importer.Import(ctx, in, c, "photos.parquet", importer.Options{})
//
// # Columns
//
// Without a Mapping columns are guessed by their names and by their first thousand values:
//
//   - The key is the first of key, id, _id, uuid, path and filename with distinct values. Without one
//     items are numbered.
//   - Labels are the first of labels, label, tags, tag, class and category.
//   - Vectors are lists of numbers of one length, and 8 or more columns of numbers d0, d1, ...
//   - A payload or a code is a column of bytes of that name.
//   - Fields are other strings, numbers, bools and times.
//
// A column with the name of a modality or field of the collection is that one. Other columns are left aside.
// Result.Columns says what each has become, and Result.Note what could be wrong. To see that before anything
// is stored, Open the file, and call Schema or Check.
//
// # Errors
//
// An error names the file, the row or line, the key and the column. A bad row costs itself if Options.OnError
// says so. Files may come from anywhere: see package files.
//
// Invariants: a column becomes one thing; rows are stored in order, each whole or not at all; a row that is
// left out changes no other (TestImport, the scripts of the command).
package importer
