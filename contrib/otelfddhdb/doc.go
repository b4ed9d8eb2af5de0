// Package otelfddhdb makes OpenTelemetry spans of what an fddhdb database does.
//
//	d, err := db.Open("photos.fddhdb", &db.Options{Tracer: otelfddhdb.NewTracer(nil)})
//
// A span is named for what it is of, "fddhdb.search" or "fddhdb.train", and is a child of
// that in the context of the call; spans of what goes on in the background have no parent,
// and indexing new codes there, which is done all the time, has none at all.
// A backup.Store gets the context of the span of the backup.
package otelfddhdb
