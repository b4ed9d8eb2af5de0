//go:build linux

package main

import (
	"bytes"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/command"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// playing is the variable that makes this binary the command to try: the real one, or
// one with a fault that the harness has to find.
const playing = "FDDHDB_FIELD_PLAY"

func TestMain(m *testing.M) {
	switch os.Getenv(playing) {
	case "":
		os.Exit(m.Run())
	case "deaf": // deaf to every signal that can be caught
		caught := make(chan os.Signal, 1)
		signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
		select {
		case <-caught:
			time.Sleep(time.Hour)
		case <-time.After(300 * time.Millisecond):
		}
	case "careless": // careless about what it cannot write
		os.Exit(command.Main(os.Args[1:], os.Stdin, careless{os.Stdout}, os.Stderr))
	case "soothing": // soothing about what it cannot read
		var said bytes.Buffer
		if code := command.Main(os.Args[1:], os.Stdin, os.Stdout, &said); code != 1 && code != 3 {
			_, _ = os.Stderr.Write(said.Bytes())
			os.Exit(code)
		}
		os.Exit(0)
	case "crashing": // crashes instead of an error
		if command.Main(os.Args[1:], os.Stdin, os.Stdout, io.Discard) != 0 {
			panic("it was not 0")
		}
		os.Exit(0)
	}
	os.Exit(command.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

type careless struct{ io.Writer }

func (c careless) Write(b []byte) (int, error) {
	_, _ = c.Writer.Write(b)
	return len(b), nil
}

// prepared returns a run, with its databases made by the real command.
func prepared(t *testing.T) *field {
	t.Helper()
	if testing.Short() {
		t.Skip("many processes, which the race detector does not look into")
	}
	f := newField(io.Discard)
	f.command, f.parent, f.jobs = os.Args[0], t.TempDir(), runtime.GOMAXPROCS(0)
	f.seed, f.env = seed.From(t, 1), []string{playing + "=real"}
	if err := f.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

// play runs scenes with a command of a sort. It returns the number of findings and what
// the run said.
func (f *field) play(t *testing.T, sort, scenes string) (found int, said string) {
	t.Helper()
	var out bytes.Buffer
	own := *f
	own.out, own.env, own.stocks = &out, []string{playing + "=" + sort}, f.stocks.of(&own)
	found, err := own.run(t.Context(), regexp.MustCompile(scenes))
	if err != nil {
		t.Fatal(err, out.String())
	}
	return found, out.String()
}

// The built command holds under damage, signals, limits, full outputs and a second
// process, for a few seconds and without permissions. .ci/run and make field run more.
// Commands with a fault are found out.
func TestField(t *testing.T) {
	f := prepared(t)
	f.budget = 6 * time.Second
	if found, said := f.play(t, "real",
		"^(damage|odd files|signals|limits|dev full|two processes)$"); found > 0 {
		t.Errorf("%d findings:\n%s", found, said)
	}
	f.budget, f.few, f.grace, f.more = time.Minute, 1, 400*time.Millisecond, time.Second
	for sort, c := range map[string]struct{ scene, want string }{
		"deaf":     {"signals", "it does not end within"},
		"careless": {"dev full", "it says that it has succeeded"},
		"soothing": {"damage", "another answer than without damage"},
		"crashing": {"damage", "the runtime ended it: panic"},
	} {
		if found, said := f.play(t, sort, "^"+c.scene+"$"); found == 0 || !strings.Contains(said, c.want) {
			t.Errorf("%s: %d findings:\n%s", sort, found, said)
		}
	}
}
