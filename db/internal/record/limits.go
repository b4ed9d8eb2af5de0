package record

// Limits on what an item, a batch and a schema may hold. Package db exports most of them.
// Descriptors are checked against them also when they are read.
const (
	MaxKeyBytes     = 1 << 10   // key, in bytes of UTF-8
	MaxNameBytes    = 1 << 8    // names of collections, modalities, fields
	MaxLabelBytes   = 1 << 10   // one label
	MaxLabels       = 1 << 12   // labels of one item
	MaxFieldBytes   = 1 << 20   // one string field
	MaxIndexedBytes = 1 << 10   // one string field that is indexed
	MaxPayloadBytes = 64 << 20  // payload
	MaxDim          = 1 << 20   // dimensions of a modality
	MaxModalities   = 1 << 8    // modalities of a collection
	MaxFields       = 1 << 10   // fields of a collection
	MaxCommandBytes = 1 << 14   // command of an encoder, with a byte for the end of each word
	MaxMarkBytes    = 64 << 10  // value of a mark
	MaxMarksBytes   = 1 << 20   // names and values of the marks of one Batch
	MaxBatchBytes   = 1 << 30   // all items of one Batch
	MaxBulkBytes    = 4 << 30   // the same where all are new items of one collection
	MaxRows         = 1<<32 - 1 // rows, labels, spaces, collections
)
