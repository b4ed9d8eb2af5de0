package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

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
		last["VOLUME"] != "/data" || last["WORKDIR"] != "/data" {
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
}
