package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
)

// programVariable makes the test executable the program.
const programVariable = "FDDHDB_CLUSTER_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if as := os.Getenv(programVariable); as != "" {
		if as == "node" { // ends with the tests, however they end
			go func() {
				_, _ = io.Copy(io.Discard, os.Stdin)
				os.Exit(1)
			}()
		}
		main()
	}
	natsproc.Main()
	os.Exit(m.Run())
}

func TestProgramCallsNoMethodByName(t *testing.T) { clitest.CallsNoMethodByName(t) }

// A stage is NATS servers, and nodes and verbs that run as processes.
type stage struct {
	t       *testing.T
	dir     string
	cluster string
	servers string // URLs, which may have users
	plain   string // URLs without
	nodes   map[string]*exec.Cmd
}

// build starts servers, whose configuration has more in it, and which the options connect to.
func build(t *testing.T, servers int, more string, options ...nats.Option) *stage {
	t.Helper()
	s := &stage{t: t, dir: t.TempDir(), cluster: "main", nodes: map[string]*exec.Cmd{}}
	g, err := natsproc.Start(t.Context(), natsproc.Config{Dir: filepath.Join(s.dir, "nats"), Servers: servers,
		ExtraConfig: more, ClientOptions: options})
	if err != nil {
		t.Fatal(err)
	}
	s.plain = strings.Join(g.URLs(), ",")
	s.servers = s.plain
	t.Cleanup(func() {
		for name := range s.nodes {
			s.leave(name)
		}
		g.Close()
	})
	return s
}

// command is the program with arguments.
func (s *stage) command(ctx context.Context, args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), programVariable+"=1", "FDDHDB_SERVERS="+s.servers,
		"FDDHDB_CLUSTER="+s.cluster)
	return cmd
}

// node starts a node.
func (s *stage) node(name string, args ...string) {
	s.t.Helper()
	log, err := os.Create(filepath.Join(s.dir, name+"."+s.cluster+".log"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	cmd := s.command(context.Background(),
		append([]string{"node", "--name", name, "--dir", filepath.Join(s.dir, s.cluster, name), "--backups",
			filepath.Join(s.dir, "backups")}, args...)...)
	cmd.Env = append(cmd.Env, programVariable+"=node")
	cmd.Stdout, cmd.Stderr = log, log
	if _, err := cmd.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.nodes[name] = cmd
}

// leave ends a node, which has to end in order.
func (s *stage) leave(name string) {
	s.t.Helper()
	if err := s.nodes[name].Process.Signal(os.Interrupt); err != nil {
		s.t.Error(err)
	}
	if err := s.nodes[name].Wait(); err != nil {
		s.t.Errorf("node %s: %v", name, err)
	}
	delete(s.nodes, name)
}

// try runs a verb.
func (s *stage) try(stdin string, args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	cmd := s.command(ctx, args...)
	var out, remarks bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &remarks
	var ended *exec.ExitError
	begin := time.Now()
	defer func() { s.t.Logf("%6.2fs  %s", time.Since(begin).Seconds(), strings.Join(args, " ")) }()
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		s.t.Fatal(err)
	}
	return out.String(), remarks.String(), cmd.ProcessState.ExitCode()
}

// ok runs a verb that has to succeed, and returns its output.
func (s *stage) ok(args ...string) string {
	s.t.Helper()
	return s.feed("", args...)
}

// feed is ok with standard input.
func (s *stage) feed(stdin string, args ...string) string {
	s.t.Helper()
	out, remarks, code := s.try(stdin, args...)
	if code != 0 {
		s.t.Fatalf("%s: exit code %d: %s", strings.Join(args, " "), code, remarks)
	}
	return out
}

// says runs a verb that has to succeed and print texts.
func (s *stage) says(args []string, texts ...string) {
	s.t.Helper()
	out := s.ok(args...)
	for _, text := range texts {
		if !strings.Contains(out, text) {
			s.t.Errorf("%s: no %q in\n%s", strings.Join(args, " "), text, out)
		}
	}
}

// fails runs a verb that has to fail, with one line on stderr that has the texts.
func (s *stage) fails(code int, args []string, texts ...string) {
	s.t.Helper()
	_, remarks, got := s.try("", args...)
	if got != code || strings.Count(remarks, "\n") != 1 || !strings.HasPrefix(remarks, "fddhdb-cluster: ") ||
		strings.Contains(remarks[5:], "fddhdb: ") {
		s.t.Errorf("%s: exit code %d, want %d: %s", strings.Join(args, " "), got, code, remarks)
	}
	for _, text := range texts {
		if !strings.Contains(remarks, text) {
			s.t.Errorf("%s: no %q in %s", strings.Join(args, " "), text, remarks)
		}
	}
}

// object runs a verb with --json that prints one object.
func object[T any](s *stage, args ...string) (x T) {
	s.t.Helper()
	all := objects[T](s, args...)
	if len(all) != 1 {
		s.t.Fatalf("%s: %d objects", strings.Join(args, " "), len(all))
	}
	return all[0]
}

// objects runs a verb with --json that prints an object a line.
func objects[T any](s *stage, args ...string) (all []T) {
	s.t.Helper()
	out := s.ok(append(args, "--json")...)
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var x T
		err := d.Decode(&x)
		if err == io.EOF {
			break
		}
		if err != nil {
			s.t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, out)
		}
		all = append(all, x)
	}
	if strings.Count(out, "\n") != len(all) {
		s.t.Errorf("%s: not an object a line: %s", strings.Join(args, " "), out)
	}
	return all
}

// write writes a file.
func (s *stage) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o666); err != nil {
		s.t.Fatal(err)
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in a minute not: %s", what)
		}
	}
}

// lines returns n lines.
func lines(n int, f func(i int) string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, f(i))
	}
	return b.String()
}
