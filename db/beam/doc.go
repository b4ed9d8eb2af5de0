// Package beam learns models, encodes items and builds databases from files of any size, with Apache Beam.
// Many processes read the files, on one machine or on many. Their result is the result of one process, to the
// last bit of a model.
//
//   - [Train] learns a model, as db.Collection.Train does, and returns a file of it (fit.File).
//   - [Encode] writes the codes of items.
//   - [Build] makes a database of each shard of the items, with model and codes, and stores it in a
//     repository of backups, which db.Restore and fddhdb restore take and verify.
//
// # How it works
//
// The program that calls these functions is the driver. It lists the files of an [Input], and lets workers
// survey them: a first pass that finds the rows that are items, their parts, and errors. fit.TrainOver
// trains, in the driver; its passes over the items are pipelines. A task of a pipeline is a run of items, and
// its result goes to a file of the temporary folder. So Beam moves only names, no runner needs to hold items
// or sums, and a pipeline that is run again makes only missing files.
//
// A shard is a share of the keys (package db/shard). Items go to files of their shard; then a worker loads
// the files of a shard into a database.
//
// # Files
//
// Files are in Beam's file systems: paths of this machine, and file systems that the program imports, as
// s3://BUCKET/KEY by package beam/io/filesystem/s3 of the SDK. All workers must be able to read the input and
// to read and write the temporary folder. A file that is not on this machine is copied to it for reading.
//
// # Errors
//
// A bad row is an error that names file and row, or with Input.Skip a [Rejected] row. A pipeline that fails
// for another reason, as when a worker dies, is run again a few times. A bad argument is a db.ErrInvalid, and
// bad files are an [InputError]. The texts name the flags of the program fddhdb-beam.
package beam
