package event_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
)

// An event in JSON says why something failed, as a log line does.
func TestEventIsJSON(t *testing.T) {
	e := event.Event{
		Name: event.NameOf(event.OpTrain, event.PhaseFailed), Time: time.Unix(0, 0).UTC(),
		Level: slog.LevelWarn,
		Op:    event.OpTrain, Phase: event.PhaseFailed, Operation: 3, Collection: "main",
		Err:   errors.New("no labels"),
		Attrs: []slog.Attr{slog.Int("bits", 64)},
	}
	for _, v := range []any{e, &e} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`{"time":"1970-01-01T00:00:00Z","level":"WARN","msg":"` +
			string(e.Name), `"collection":"main"`, `"bits":64`, `"error":"no labels"`} {
			if !strings.Contains(string(b), want) {
				t.Errorf("%s without %s", b, want)
			}
		}
	}
}
