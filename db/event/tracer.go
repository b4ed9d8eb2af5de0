package event

import (
	"context"
	"log/slog"
)

// A Tracer makes spans of what a database does: of every Op but those of the store itself,
// and but OpIndex where new codes are indexed as they come, which goes on all the time; that
// which a Compact, Reindex, Train or WaitForIndex waits for has a span.
// It is called in the goroutines of the callers, or for what goes on in the background in
// one of the database, and a search waits for it: it has to be quick, safe for concurrent
// use, must not call the database, and must not panic. Module contrib/otelfddhdb has one
// for OpenTelemetry.
type Tracer interface {
	// Start begins a span. The call goes on with the context that it returns, which also
	// reaches a backup.Store.
	Start(ctx context.Context, call Call) (context.Context, Span)
}

// A Call is what a span is of.
type Call struct {
	Op         Op
	Dir        string // of the database
	Collection string // "" where it is not about one
}

// A Span ends when its call does.
type Span interface {
	// End is called once, with the error that the call returns, and with what there is to
	// say of it. It must not keep the attributes.
	End(err error, attrs ...slog.Attr)
}
