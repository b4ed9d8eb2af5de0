//go:build unix && skew

package cluster_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
	"github.com/fddhdb/fddhdb/db/cluster/internal/skew"
)

// The faults of clocks: the clock of one process jumps by seconds or by hours, and back later. See
// internal/skew.

// clockFile is where the clock of a process gets its error from.
func clockFile(dir string) string { return filepath.Join(dir, "clock") }

func init() {
	if config := os.Getenv("FDDHDB_NATSPROC_CONFIG"); config != "" {
		skew.Follow(clockFile(filepath.Dir(config)))
	}
	var node nodeConfig
	if json.Unmarshal([]byte(os.Getenv(nodeVariable)), &node) == nil && node.Dir != "" {
		skew.Follow(clockFile(filepath.Dir(node.Dir) + "/clock-" + node.Node))
	}
	breakages = append(breakages,
		breakage{"jump clock of node", ofClocks, 4, false,
			func(s *site, r *rand.Rand) (string, func() error, func() error) {
				n := someNode(s, r)
				return jump(r, n.config.Node, clockFile(filepath.Dir(n.config.Dir)+"/clock-"+n.config.Node))
			}},
		breakage{"jump clock of server", ofClocks, 4, false,
			func(s *site, r *rand.Rand) (string, func() error, func() error) {
				i := someServer(s, r)
				return jump(r, s.servers.Name(i), clockFile(filepath.Join(s.dir, "nats", fmt.Sprint(i))))
			}},
	)
}

func jump(r *rand.Rand, of, file string) (string, func() error, func() error) {
	seconds := []int{-86_400, -3_600, -150, -5, 5, 150, 3_600, 86_400}[r.IntN(8)]
	return fmt.Sprintf("%s by %ds", of, seconds), func() error {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
			return os.WriteFile(file, fmt.Append(nil, seconds), 0o644)
		}, func() error {
			if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}
}

// The clock of a server jumps, and time goes on as before.
func TestClocksJump(t *testing.T) {
	dir := t.TempDir()
	servers, err := natsproc.Start(t.Context(), natsproc.Config{Dir: dir, Servers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer servers.Close()
	nc, err := nats.Connect(servers.URL(0))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "LOG",
		Subjects: []string{"log"}})
	if err != nil {
		t.Fatal(err)
	}
	file := clockFile(filepath.Join(dir, "0"))
	for _, off := range []time.Duration{0, time.Hour, -24 * time.Hour, 0} {
		if err := os.WriteFile(file, fmt.Append(nil, int(off.Seconds())), 0o644); err != nil {
			t.Fatal(err)
		}
		eventually(t, fmt.Sprint("a clock that is off by ", off), func() bool {
			ack, err := js.Publish(t.Context(), "log", nil)
			if err != nil {
				t.Fatal(err)
			}
			m, err := stream.GetMsg(t.Context(), ack.Sequence)
			if err != nil {
				t.Fatal(err)
			}
			return (time.Until(m.Time) - off).Abs() < time.Minute
		})
	}
}
