package event

import (
	"context"
	"log/slog"
)

// A Tracer makes spans for the operations of a database: for every Op but two.
// Operations of the store itself have none. OpRerank has none, nor has OpIndex while it indexes new codes
// as they come, which goes on all the time; it has one if Compact, Reindex, Train or
// WaitForIndex waits for it.
//
// It is called in the goroutines of callers and of background work, and a search waits
// for it. So it must be fast and safe for concurrent use, and must not call the
// database or panic. Module contrib/otelfddhdb has a Tracer for OpenTelemetry.
type Tracer interface {
	// Start begins a span. The call goes on with the returned context, which also
	// reaches a backup.Store.
	Start(ctx context.Context, call Call) (context.Context, Span)
}

// A Call describes the call of a span.
type Call struct {
	Op         Op
	Dir        string // folder of the database
	Collection string // "" if it is not about one
}

// A Span ends with its call.
type Span interface {
	// End is called once, with the error of the call, nil if it has succeeded, and with
	// attributes of its result. It must not keep the attributes.
	End(err error, attrs ...slog.Attr)
}
