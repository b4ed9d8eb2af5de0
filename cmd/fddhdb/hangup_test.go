//go:build linux || darwin

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
)

// scriptEncoder stores an encoder of the texts of a new database, whose vectors are all 0,1, and returns the
// database. Then it makes a script of sh of the encoder.
func scriptEncoder(t *testing.T, dir, script string, puts ...string) string {
	t.Helper()
	path, program := makeDatabase(t, dir, append(puts, "put a --vector text=0,1")...), filepath.Join(dir, "encoder")
	clitest.Check(t, os.WriteFile(program, []byte("#!/bin/sh\nexec sed s/.*/0,1/\n"), 0o700))
	if out, err := exec.Command("fddhdb", "encoder", path, "--set",
		"text="+program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	clitest.Check(t, os.WriteFile(program, []byte("#!/bin/sh\n"+script), 0o700))
	return path
}

// When its terminal closes, a search ends, and leaves no encoder behind; under nohup it goes on.
func TestHangup(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for processes")
	}
	// Programs that are started have SIGHUP as by default then, also where these tests run under nohup.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	dir := t.TempDir()
	begun, pipe := filepath.Join(dir, "begun"), filepath.Join(dir, "pipe")
	for _, name := range []string{begun, pipe} {
		clitest.Check(t, syscall.Mkfifo(name, 0o600))
	}
	// The encoder reads its input, says which process it is, and answers what comes through a pipe.
	path := scriptEncoder(t, dir, "read -r line\necho $$ >"+begun+"\nexec cat "+pipe+"\n",
		"put b --vector text=1,0")
	for _, nohup := range []bool{false, true} {
		search := []string{"fddhdb", "search", path, "--text", "cat", "--json"}
		if nohup {
			search = []string{"sh", "-c", `trap "" HUP; exec "$@"`, "sh", "fddhdb", "search", path, "--text",
				"cat", "--json"}
		}
		cmd := exec.Command(search[0], search[1:]...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		clitest.Check(t, cmd.Start())
		said, err := os.ReadFile(begun) // when the encoder has begun
		clitest.Check(t, err)
		encoder, err := strconv.Atoi(strings.TrimSpace(string(said)))
		clitest.Check(t, err)
		clitest.Check(t, cmd.Process.Signal(syscall.SIGHUP))
		if nohup {
			// The first four tell encoders apart.
			clitest.Check(t, os.WriteFile(pipe, []byte(strings.Repeat("0,1\n", 5)), 0))
		}
		if err := cmd.Wait(); nohup &&
			(err != nil || !strings.HasPrefix(stdout.String(), `{"query":"cat","hits":[{"key":"a"`)) {
			t.Errorf("under nohup: %v, %s%s", err, &stdout, &stderr)
		} else if !nohup && (cmd.ProcessState.ExitCode() != 1 ||
			!strings.Contains(stderr.String(), "interrupted")) {
			t.Errorf("%v, %s%s", err, &stdout, &stderr)
		}
		// a kill takes a moment
		for until := time.Now().Add(time.Minute); !errors.Is(syscall.Kill(encoder, 0),
			syscall.ESRCH); time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("nohup %v: the encoder goes on", nohup)
			}
		}
	}
}

// A crash is none of the exit codes of fddhdb. A program of Go takes SIGQUIT for one.
func TestCrash(t *testing.T) {
	cmd := exec.Command("fddhdb", makeDatabase(t, t.TempDir()))
	var stderr bytes.Buffer
	cmd.Env, cmd.Stderr = append(os.Environ(), "GOTRACEBACK="), &stderr
	in := clitest.Must(cmd.StdinPipe())(t)
	out, err := cmd.StdoutPipe()
	clitest.Check(t, err)
	clitest.Check(t, cmd.Start())
	if _, err := in.Write([]byte("count\n")); err != nil {
		t.Error(err)
	}
	if _, err := out.Read(make([]byte, 100)); err != nil { // when it runs
		t.Error(err)
	}
	if err := cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Error(err)
	}
	err = cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() ||
		status.Signal() != syscall.SIGABRT || !strings.Contains(stderr.String(), "SIGQUIT") {
		t.Errorf("%v: %.500s", err, &stderr)
	}
}
