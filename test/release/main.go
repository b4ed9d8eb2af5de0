package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := release{platforms: platforms}
	flag.StringVar(&r.out, "out", "dist", "the `folder` for the archives; it must not be there yet")
	flag.BoolVar(&r.dirty, "dirty", false, "build although the working tree has changes, to try this out")
	flag.Parse()
	out, err := filepath.Abs(r.out)
	if err == nil {
		r.out = out
		err = toTop(ctx)
	}
	if err == nil {
		err = r.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release: "+err.Error())
		os.Exit(1)
	}
}

// toTop goes to the top of the repository, which all paths are relative to.
func toTop(ctx context.Context) error {
	top, err := output(ctx, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	return os.Chdir(top)
}

// platforms are the supported platforms.
var platforms = []platform{
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"linux", "amd64"}, {"linux", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

type platform struct{ os, arch string }

func (p platform) executable() string {
	if p.os == "windows" {
		return "fddhdb.exe"
	}
	return "fddhdb"
}

// A release describes what is built, and where.
type release struct {
	out       string
	dirty     bool
	platforms []platform

	version string
	time    time.Time // of the commit

	client []byte // for Python, as the command prints it

	sums strings.Builder // SHA-256 sums of the files that are written, with their names
}

func (r *release) run(ctx context.Context) error {
	if err := r.identify(ctx); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "fddhdb-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	host := filepath.Join(tmp, platform{os: runtime.GOOS}.executable())
	if err := build(ctx, platform{runtime.GOOS, runtime.GOARCH}, host); err != nil {
		return err
	}
	if r.version, err = versionOf(ctx, host); err != nil {
		return err
	}
	client, err := output(ctx, host, "python")
	if err != nil {
		return err
	}
	r.client = []byte(client + "\n")
	beside, err := besides(ctx, host)
	if err != nil {
		return err
	}
	if err := os.Mkdir(r.out, 0o755); err != nil {
		return fmt.Errorf("the folder of the archives has to be new: %w", err)
	}
	for _, p := range r.platforms {
		path := filepath.Join(tmp, p.os+"-"+p.arch)
		if err := build(ctx, p, path); err != nil {
			return err
		}
		executable, err := os.ReadFile(path)
		if err == nil {
			err = r.pack(p, executable, beside)
		}
		if err != nil {
			return fmt.Errorf("%s/%s: %w", p.os, p.arch, err)
		}
	}
	fmt.Print(r.sums.String())
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(r.sums.String()), 0o644)
}

// write writes a file of the release.
func (r *release) write(name string, data []byte) error {
	fmt.Fprintf(&r.sums, "%x  %s\n", sha256.Sum256(data), name)
	return os.WriteFile(filepath.Join(r.out, name), data, 0o644)
}

// identify reads the commit: its time, and whether the working tree has changes.
func (r *release) identify(ctx context.Context) error {
	changes, err := output(ctx, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" && !r.dirty {
		return fmt.Errorf("the working tree has changes, which no commit names: commit or stash them\n%s",
			changes)
	}
	seconds, err := output(ctx, "git", "log", "-1", "--format=%cI")
	if err != nil {
		return err
	}
	t, err := time.Parse(time.RFC3339, seconds)
	r.time = t.UTC()
	return err
}

// build builds the shell for a platform.
func build(ctx context.Context, p platform, path string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o",
		path, "./cmd/fddhdb")
	// Settings of the machine must not change the result.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch,
		"GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, said.Bytes())
	}
	return nil
}

// versionOf runs a built shell and returns its version.
func versionOf(ctx context.Context, path string) (string, error) {
	out, err := output(ctx, path, "version", "--json")
	if err != nil {
		return "", err
	}
	var v struct{ Version string }
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		return "", fmt.Errorf("version: %w", err)
	}
	if v.Version == "" || v.Version == "(devel)" {
		return "", errors.New("the build does not know its version: is this a clone, with git at hand?")
	}
	return v.Version, nil
}

// besides returns the files that an archive has besides the shell. host is a shell that
// runs here; it prints the completions.
func besides(ctx context.Context, host string) ([]file, error) {
	var files []file
	for name, path := range map[string]string{"LICENSE": "LICENSE", "README.md": "README.md",
		"CHANGELOG.md": "CHANGELOG.md"} {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, 0o644, b})
	}
	for name, shell := range map[string]string{"fddhdb.bash": "bash", "_fddhdb": "zsh",
		"fddhdb.fish": "fish"} {
		out, err := output(ctx, host, "completion", shell)
		if err != nil {
			return nil, err
		}
		files = append(files, file{"completion/" + name, 0o644, []byte(out + "\n")})
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

// stem returns the name of what is made for a platform, without an extension. It is also
// the folder in the archive.
func stem(version string, p platform) string {
	return fmt.Sprintf("fddhdb-%s-%s-%s", strings.TrimPrefix(version, "v"), p.os, p.arch)
}

// archiveName returns the name of the archive for a platform.
func archiveName(version string, p platform) string {
	if p.os == "windows" {
		return stem(version, p) + ".zip"
	}
	return stem(version, p) + ".tar.gz"
}

// pack packs the shell for a platform, with the files beside it: as an archive, and as a wheel.
func (r *release) pack(p platform, executable []byte, beside []file) error {
	pack := packTar
	if p.os == "windows" {
		pack = packZip
	}
	var b bytes.Buffer
	err := pack(&b, stem(r.version, p), r.time, append([]file{{p.executable(), 0o755, executable}},
		beside...))
	if err == nil {
		err = r.write(archiveName(r.version, p), b.Bytes())
	}
	if err != nil {
		return err
	}
	return r.wheel(p, executable, beside)
}

// wheel writes the wheel for a platform.
func (r *release) wheel(p platform, executable []byte, beside []file) error {
	i := slices.IndexFunc(beside, func(f file) bool { return f.name == "LICENSE" })
	files, err := wheelFiles(r.version, p, r.client, beside[i].data, executable)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := packWheel(&b, r.time, files); err != nil {
		return err
	}
	return r.write(wheelName(r.version, p), b.Bytes())
}

// output returns the output of a command, without the last line break.
func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w %s", filepath.Base(name), strings.Join(args, " "), err, said.Bytes())
	}
	return strings.TrimRight(string(out), "\n"), nil
}
