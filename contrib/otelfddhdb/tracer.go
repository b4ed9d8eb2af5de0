package otelfddhdb

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/fddhdb/fddhdb/db/event"
)

// Scope is the name of the instrumentation scope of the spans.
const Scope = "github.com/fddhdb/fddhdb/contrib/otelfddhdb"

// tracer is an event.Tracer that starts spans of t.
type tracer struct{ t trace.Tracer }

// NewTracer returns a tracer that makes spans with a provider; nil means the global
// one. It is safe for concurrent use, and several databases may share it.
//
// Attributes of spans follow the conventions for databases: db.system.name is "fddhdb",
// db.namespace the folder, db.collection.name the collection, db.operation.name the
// operation. The names of all others begin with "fddhdb.": for example, the plan and
// the number of hits of a search, or the space that a training has made.
func NewTracer(provider trace.TracerProvider) event.Tracer {
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	return tracer{provider.Tracer(Scope)}
}

func (t tracer) Start(ctx context.Context, call event.Call) (context.Context, event.Span) {
	attrs := make([]attribute.KeyValue, 0, 4)
	attrs = append(attrs,
		attribute.String("db.system.name", "fddhdb"),
		attribute.String("db.namespace", call.Dir),
		attribute.String("db.operation.name", string(call.Op)))
	if call.Collection != "" {
		attrs = append(attrs, attribute.String("db.collection.name", call.Collection))
	}
	ctx, s := t.t.Start(ctx, "fddhdb."+string(call.Op), trace.WithAttributes(attrs...))
	return ctx, span{s}
}

// span is an event.Span.
type span struct{ s trace.Span }

func (s span) End(err error, attrs ...slog.Attr) {
	if s.s.IsRecording() {
		all := make([]attribute.KeyValue, 0, len(attrs))
		for _, a := range attrs {
			if a.Key != "collection" { // the span has it from its start
				all = append(all, keyValue(a))
			}
		}
		s.s.SetAttributes(all...)
		if err != nil {
			s.s.RecordError(err)
			s.s.SetStatus(codes.Error, err.Error())
		}
	}
	s.s.End()
}

func keyValue(a slog.Attr) attribute.KeyValue {
	key := attribute.Key("fddhdb." + a.Key)
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindBool:
		return key.Bool(v.Bool())
	case slog.KindInt64:
		return key.Int64(v.Int64())
	case slog.KindUint64:
		return key.Int64(int64(v.Uint64()))
	case slog.KindFloat64:
		return key.Float64(v.Float64())
	case slog.KindDuration:
		return key.Float64(v.Duration().Seconds())
	default:
		return key.String(v.String())
	}
}
