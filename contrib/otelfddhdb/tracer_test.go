package otelfddhdb

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/event"
)

// traced is a store that notes the span of each call. Several goroutines may call it.
type traced struct {
	backup.Store
	mu sync.Mutex
	in map[trace.SpanID]bool
}

func (s *traced) Put(ctx context.Context, name string, r io.ReadSeeker, size int64) error {
	s.mu.Lock()
	s.in[trace.SpanFromContext(ctx).SpanContext().SpanID()] = true
	s.mu.Unlock()
	return s.Store.Put(ctx, name, r, size)
}

func TestSpans(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))
	dir := t.TempDir()
	d, err := db.Open(dir, &db.Options{Tracer: NewTracer(provider)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, root := provider.Tracer("test").Start(context.Background(), "request")
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(ctx, &db.Item{Key: "a", Code: []byte{1, 2}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Search(ctx, db.Query{Code: []byte{1, 2}, Plan: db.PlanScan}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Search(ctx, db.Query{Key: "none"}); !errors.Is(err, db.ErrNotFound) {
		t.Fatal(err)
	}
	folder, err := backup.Folder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	store := &traced{Store: folder, in: map[trace.SpanID]bool{}}
	if _, err := d.Backup(ctx, store, db.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	root.End()
	var names []string
	for _, s := range recorder.Ended() {
		if s.Name() == "request" || s.Parent().SpanID() != root.SpanContext().SpanID() {
			continue // a call of the store in the background
		}
		names = append(names, s.Name())
		attrs := map[attribute.Key]attribute.Value{}
		for _, a := range s.Attributes() {
			attrs[a.Key] = a.Value
		}
		if attrs["db.system.name"].AsString() != "fddhdb" || attrs["db.namespace"].AsString() == "" ||
			"fddhdb."+attrs["db.operation.name"].AsString() != s.Name() {
			t.Errorf("%s: %v", s.Name(), attrs)
		}
		switch len(names) {
		case 2:
			if attrs["fddhdb.plan"].AsString() != "scan" || attrs["fddhdb.hits"].AsInt64() != 1 ||
				attrs["db.collection.name"].AsString() != "main" {
				t.Errorf("search: %v", attrs)
			}
		case 3:
			if s.Status().Code != codes.Error || len(s.Events()) != 1 {
				t.Errorf("a search that failed: %v, %v", s.Status(), s.Events())
			}
		case 4:
			if !store.in[s.SpanContext().SpanID()] || len(store.in) != 1 ||
				attrs["fddhdb.id"].AsString() == "" {
				t.Errorf("backup: %v, stored in %v", attrs, store.in)
			}
		}
	}
	if want := []string{"fddhdb.write", "fddhdb.search", "fddhdb.search", "fddhdb.backup"}; len(names) != 4 ||
		names[0] != want[0] || names[1] != want[1] || names[2] != want[2] || names[3] != want[3] {
		t.Errorf("spans %v, want %v", names, want)
	}
}

func TestAttributes(t *testing.T) {
	for _, c := range []struct {
		a    slog.Attr
		want attribute.KeyValue
	}{
		{slog.Int("n", -3), attribute.Int64("fddhdb.n", -3)},
		{slog.Uint64("n", 3), attribute.Int64("fddhdb.n", 3)},
		{slog.Bool("b", true), attribute.Bool("fddhdb.b", true)},
		{slog.Float64("x", .5), attribute.Float64("fddhdb.x", .5)},
		{slog.String("s", "text"), attribute.String("fddhdb.s", "text")},
		{slog.Duration("d", 1500*time.Millisecond), attribute.Float64("fddhdb.d", 1.5)},
		{slog.Any("e", errors.New("bad")), attribute.String("fddhdb.e", "bad")},
	} {
		if got := keyValue(c.a); got != c.want {
			t.Errorf("%v: %v, want %v", c.a, got, c.want)
		}
	}
}

// Nil means the global provider, which makes no spans by default.
func TestGlobalProvider(t *testing.T) {
	ctx, s := NewTracer(nil).Start(context.Background(), event.Call{Op: event.OpSearch})
	s.End(nil, slog.Int("hits", 1))
	if trace.SpanFromContext(ctx).IsRecording() {
		t.Error("a span is recorded")
	}
}
