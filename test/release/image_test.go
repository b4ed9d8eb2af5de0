package main

import (
	"bufio"
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	yaml "github.com/pb33f/go-yaml"

	"github.com/fddhdb/fddhdb/internal/effort"
)

// instructions returns the instructions of the Dockerfile: a name and the rest of the line.
func instructions(t *testing.T, root string) (list [][2]string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(strings.ReplaceAll(string(b), "\\\n", "")) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			name, rest, _ := strings.Cut(line, " ")
			list = append(list, [2]string{name, strings.TrimSpace(rest)})
		}
	}
	return list
}

// The Dockerfile copies files that are there, and the image has nothing but the program
// and what it needs.
func TestDockerfile(t *testing.T) {
	root := filepath.Join("..", "..")
	var made, stage string
	last := map[string]string{} // in the last stage
	for _, in := range instructions(t, root) {
		name, rest := in[0], in[1]
		switch name {
		case "FROM":
			stage = rest
			last = map[string]string{}
		case "RUN":
			made += rest + "\n"
		case "COPY":
			words := strings.Fields(rest)
			from, remote := strings.CutPrefix(words[0], "--from=")
			if remote {
				if src := strings.TrimSuffix(words[1], "/"); from != "build" ||
					!strings.Contains(made, "-o "+src+"/") {
					t.Errorf("COPY %s: no stage makes it", rest)
				}
				break
			}
			for _, src := range words[:len(words)-1] {
				if _, err := os.Stat(filepath.Join(root, src)); err != nil {
					t.Errorf("COPY %s: %v", rest, err)
				}
			}
		}
		last[name] = rest
	}
	if stage != "scratch" || last["USER"] != "65532:65532" || last["ENTRYPOINT"] != `["/fddhdb"]` ||
		last["VOLUME"] != "/data" || last["WORKDIR"] != "/data" || last["EXPOSE"] != "7070" {
		t.Errorf("the last stage, FROM %s: %q", stage, last)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if _, version, _ := strings.Cut(string(mod), "\ngo "); !strings.Contains(instructions(t, root)[0][1],
		"golang:"+strings.Join(strings.Split(strings.Fields(version)[0], ".")[:2], ".")+" ") {
		t.Errorf("the image is built by %s, and go.mod asks for %s", instructions(t, root)[0][1],
			strings.Fields(version)[0])
	}
}

// The shell that the image has is static, and works as a user without rights in a root
// that has nothing else.
func TestImageRuns(t *testing.T) {
	if !effort.Long() {
		t.Skip("builds the shell: -long")
	}
	if runtime.GOOS != "linux" {
		t.Skip("images are of Linux")
	}
	root := t.TempDir()
	program := filepath.Join(root, "fddhdb")
	for dir, mode := range map[string]os.FileMode{"": 0o755, "tmp": 0o1777, "data": 0o755} {
		path := filepath.Join(root, dir)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join("..", ".."))
	if err := build(t.Context(), platform{"linux", runtime.GOARCH}, program); err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the shell is not static: it has %v", p.Type)
		}
	}
	chroot, err := exec.LookPath("chroot")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("only root can change the root of a process")
	}
	if err := os.Chown(filepath.Join(root, "data"), 65532, 65532); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"version", "init /data/a.db --codes 8", "put /data/a.db k --code ff",
		"search /data/a.db --code fe", "backup /data/a.db /data/kept", "verify /data/kept"} {
		cmd := exec.CommandContext(t.Context(), chroot,
			append([]string{"--userspec=65532:65532", root, "/fddhdb"}, strings.Fields(line)...)...)
		cmd.Env = []string{}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "data", "a.db")); err != nil {
		t.Error(err)
	}
	serves(t, func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), chroot,
			append([]string{"--userspec=65532:65532", root, "/fddhdb"}, args...)...)
		cmd.Env = []string{}
		return cmd
	})
}

// serves runs what the image runs without arguments: it creates a database and serves it, the health check
// passes while it does, and SIGTERM ends it.
func serves(t *testing.T, fddhdb func(args ...string) *exec.Cmd) {
	t.Helper()
	var command, health []string
	for _, in := range instructions(t, ".") {
		switch _, list, _ := strings.Cut(in[1], "CMD "); in[0] {
		case "CMD":
			fine(t, json.Unmarshal([]byte(in[1]), &command))
		case "HEALTHCHECK":
			fine(t, json.Unmarshal([]byte(list), &health))
		}
	}
	port := slices.Index(command, ":7070")
	if port < 0 || len(health) != 3 || health[0] != "/fddhdb" {
		t.Fatalf("the image runs %q, and its health check is %q", command, health)
	}
	command[port] = "127.0.0.1:0" // any port of this machine
	if out, err := fddhdb(command...).CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "fddhdb token") {
		t.Fatalf("without tokens: %v\n%s", err, out)
	}
	out, err := fddhdb("token", "/data/tokens", "--name", "admin", "--scope", "admin").Output()
	fine(t, err)
	server := fddhdb(command...)
	stdout, err := server.StdoutPipe()
	fine(t, err)
	fine(t, server.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	fine(t, err)
	url, _, _ := strings.Cut(line, " ")
	check := func() error { return fddhdb(health[1], url).Run() }
	if err := check(); err != nil {
		t.Errorf("the health check: %v", err)
	}
	for token, code := range map[string]int{strings.TrimSpace(string(out)): 0, "nonsense": 1} {
		client := fddhdb("init", url+"/main", "--codes", "8", "--collection", "c"+strconv.Itoa(code))
		client.Env = []string{"FDDHDB_TOKEN=" + token}
		if out, err := client.CombinedOutput(); client.ProcessState.ExitCode() != code {
			t.Errorf("init by %s: %v\n%s", token, err, out)
		}
	}
	began := time.Now()
	fine(t, server.Process.Signal(syscall.SIGTERM))
	if err := server.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	t.Logf("ended %v after SIGTERM", time.Since(began))
	if err := check(); err == nil {
		t.Error("the health check passes when nothing runs")
	}
}

func fine(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The unit of systemd is one, and what it and the services of compose run are command lines.
func TestServiceFiles(t *testing.T) {
	root := filepath.Join("..", "..")
	b, err := os.ReadFile(filepath.Join(root, "contrib", "compose", "compose.yaml"))
	fine(t, err)
	var compose struct {
		Services map[string]struct {
			Image   string
			Command []string
			Volumes []string
		}
	}
	fine(t, yaml.Unmarshal(b, &compose))
	proxy, err := os.ReadFile(filepath.Join(root, "contrib", "compose", "Caddyfile"))
	fine(t, err)
	var lines [][]string
	for name, s := range compose.Services {
		if name == "proxy" {
			continue
		}
		if s.Image != "fddhdb" || len(s.Volumes) != 1 || !strings.HasSuffix(s.Volumes[0], ":/data") ||
			!strings.Contains(string(proxy), "reverse_proxy "+name+":7070") {
			t.Errorf("%s: %+v", name, s)
		}
		if s.Command != nil {
			lines = append(lines, s.Command)
		}
	}
	if len(compose.Services) != 3 || len(lines) != 1 {
		t.Fatalf("%+v", compose)
	}
	unit, err := os.ReadFile(filepath.Join(root, "contrib", "systemd", "fddhdb.service"))
	fine(t, err)
	_, start, _ := strings.Cut(string(unit), "\nExecStart=/usr/bin/fddhdb ")
	start, _, _ = strings.Cut(start, "\n")
	lines = append(lines, strings.Fields(start))
	program := filepath.Join(t.TempDir(), "fddhdb")
	cmd := exec.Command("go", "build", "-o", program, "./cmd/fddhdb")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, line := range lines {
		// All flags are known, and only the tokens are missing here.
		out, err := exec.Command(program, line...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "fddhdb token") {
			t.Errorf("%q: %v\n%s", line, err, out)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze to look at the unit")
	}
	copied := filepath.Join(t.TempDir(), "fddhdb.service")
	fine(t, os.WriteFile(copied, []byte(strings.ReplaceAll(string(unit), "/usr/bin/fddhdb", program)), 0o644))
	out, err := exec.Command(analyze, "verify", "--man=no", copied).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
