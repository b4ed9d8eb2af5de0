// Package otelfddhdb makes OpenTelemetry spans of what an fddhdb database does.
//
//	d, err := db.Open("photos.fddhdb", &db.Options{Tracer: otelfddhdb.NewTracer(nil)})
//
// The name of a span says the operation: "fddhdb.search" or "fddhdb.train". Its parent
// is the span in the context of the call. Operations in the background have spans
// without a parent; the constant indexing of new codes has none. A backup.Store gets a
// context with the span of the backup.
//
// The package imports db/event, which describes operations, and the API of
// OpenTelemetry. It keeps no state: goroutines and databases may share a tracer.
// TestSpans proves names and parents, TestAttributes the attributes.
package otelfddhdb
