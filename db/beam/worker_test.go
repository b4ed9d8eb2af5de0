package beam

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/model/sum"

	"github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/internal/synth"
)

var kills = flag.Int("kills", 0, "workers to kill, one after another")

// Programs are built once: the command of this module, and Prism, Beam's runner, as a program of its own.
var programs = sync.OnceValues(func() (string, error) {
	built = true
	dir, err := os.MkdirTemp("", "fddhdb-beam-programs-")
	if err != nil {
		return "", err
	}
	b, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", dir+"/", "./cmd/fddhdb-beam",
		"github.com/apache/beam/sdks/v2/go/cmd/prism").CombinedOutput()
	if err != nil {
		return dir, fmt.Errorf("%w: %s", err, b)
	}
	return dir, nil
})

// built says that programs has been called.
var built bool

// program returns the path of one of them.
func program(t *testing.T, name string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("Prism starts no worker processes there")
	}
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// prism starts Prism in a process of its own, and returns its endpoint.
func prism(t *testing.T) string {
	t.Helper()
	path := program(t, "prism")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	_ = l.Close()
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, "--job_port", port, "--serve_http=false", "--log_level", "error")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was killed
	})
	for range 200 {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
			return address
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("prism does not listen")
	return ""
}

// workers are the flags of a run on a Prism of its own.
func workerFlags(t *testing.T, endpoint, environment string) []string {
	t.Helper()
	flags := []string{"--endpoint", endpoint, "--environment_type", environment}
	if environment == "PROCESS" {
		path := program(t, "fddhdb-beam")
		flags = append(flags, "--environment_config", fmt.Sprintf(`{"command":%q}`, path), "--worker_binary",
			path)
	}
	return flags
}

// trainArgs are the arguments of the command that trains on a set with the settings of small.
func (s *set) trainArgs(model string, more ...string) []string {
	return append([]string{"train", "--vectors", "image=" + s.dir + "/image-*.npy", "--vectors",
		"text=" + s.dir + "/text-*.npy",
		"--labels", s.dir + "/labels-*.txt", "--keys", s.dir + "/keys-*.txt",
		"--bits", "16", "--seed", "5", "--anchors", "12", "--features", "image=zscore", "--features",
		"text=raw", "--map", "image=rbf", "--map", "text=rbf+linear",
		"--width", "image=1", "--width", "text=1", "--model", model, "--silence", "20s"}, more...)
}

// The command learns the model of one database by workers in its process, and in processes of their own.
func TestWorkers(t *testing.T) {
	s := newSet(t, synth.Config{Seed: 3, Items: sum.LeafItems + 999, Classes: 7, LabelsPerItem: 3,
		Dims: []int{6, 5}}, 3)
	want := exported(t, s.database(t), small(5))
	endpoint := prism(t)
	for _, environment := range []string{"LOOPBACK", "PROCESS"} {
		file := filepath.Join(t.TempDir(), "model")
		b, err := exec.CommandContext(t.Context(), program(t, "fddhdb-beam"),
			s.trainArgs(file, workerFlags(t, endpoint, environment)...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", environment, err, b)
		}
		got, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: another model, or %v", environment, err)
		}
		if !strings.Contains(string(b), "items summed up") {
			t.Errorf("%s: no counters in %q", environment, b)
		}
	}
}

// A worker that is killed costs time.
func TestKilledWorkers(t *testing.T) {
	if *kills == 0 {
		t.Skip("takes half a minute each: make beam, or -args -kills N")
	}
	s := newSet(t, synth.Config{Seed: 3, Items: 3*sum.LeafItems + 999, Classes: 7, LabelsPerItem: 3,
		Dims: []int{6, 5}}, 3)
	want := exported(t, s.database(t), small(5))
	endpoint := prism(t)
	rng := seed.Rand(t, 1, 2)
	// a run may end before its worker is to be killed
	for n, runs := 0, 0; n < *kills && runs < 3**kills; runs++ {
		file := filepath.Join(t.TempDir(), "model")
		cmd := exec.CommandContext(t.Context(), program(t, "fddhdb-beam"),
			s.trainArgs(file, workerFlags(t, endpoint, "PROCESS")...)...)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		killed := killWorker(time.Duration(rng.Int64N(int64(6 * time.Second))))
		if killed != "none" {
			n++
		}
		err := cmd.Wait()
		got, readErr := os.ReadFile(file)
		if err != nil || readErr != nil || !bytes.Equal(got, want) {
			t.Fatalf("killed: %v: another model, %v or %v: %s", killed, err, readErr, &said)
		}
		t.Logf("killed: %v; run again: %v", killed, strings.Contains(said.String(), "run again"))
	}
}

// killWorker kills a worker after a while, and returns which one.
func killWorker(after time.Duration) string {
	time.Sleep(after)
	for range 100 {
		b, err := exec.Command("pgrep", "-n", "-f", "fddhdb-beam-programs-.*--worker=true").Output()
		if pid := strings.TrimSpace(string(b)); err == nil && pid != "" {
			if exec.Command("kill", "-9", pid).Run() == nil {
				return fmt.Sprintf("%s after %v", pid, after)
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return "none"
}
