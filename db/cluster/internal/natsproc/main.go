package natsproc

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/nats-io/nats-server/v2/server"
)

// configVariable names the environment variable that turns an executable into a NATS server. Its value is the
// path of the configuration file.
const configVariable = "FDDHDB_NATSPROC_CONFIG"

// Main returns at once in a normal process. In a process that Start has made, it runs a NATS server and never
// returns. Call it before anything else, because what comes before it also happens in every server.
func Main() {
	path := os.Getenv(configVariable)
	if path == "" {
		return
	}
	if err := serve(path); err != nil {
		fmt.Fprintln(os.Stderr, "natsproc:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve runs a server until SIGTERM, an interrupt or the end of standard input. The parent holds the other
// end of standard input and never writes.
func serve(path string) error {
	opts, err := server.ProcessConfigFile(path)
	if err != nil {
		return err
	}
	opts.NoSigs = true
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	s.ConfigureLogger()

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	orphaned := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // any error means the same: no parent
		close(orphaned)
	}()
	go func() {
		select {
		case <-signals:
			s.Shutdown()
		case <-orphaned:
			// The data will not be read again: hand over nothing.
			os.Exit(1)
		}
	}()

	s.Start()
	s.WaitForShutdown()
	return nil
}
