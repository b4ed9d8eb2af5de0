package main

import (
	"flag"
	"os"
	"testing"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	beamlog "github.com/apache/beam/sdks/v2/go/pkg/beam/log"
)

func TestMain(m *testing.M) {
	flag.Parse()
	beamlog.LogLevel, beamlog.LogKind = "error", "text"
	sdk.Init()
	os.Exit(m.Run())
}

func TestRun(t *testing.T) {
	if err := run(t.Context(), 3000, 3, t.TempDir()); err != nil {
		t.Fatal(err)
	}
}
