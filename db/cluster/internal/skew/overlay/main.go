// Overlay writes the files for "go test -overlay" with jumping clocks (package skew): the package time of
// this Go, with a Now that adds a number of seconds.
//
//	go test -tags skew -overlay $(go run ./internal/skew/overlay DIR) -run TestFaults .
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: overlay DIR")
		os.Exit(2)
	}
	file, err := write(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "overlay:", err)
		os.Exit(1)
	}
	fmt.Println(file)
}

// now is the place where Now has read the clock of the machine.
const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"

// write writes the files into a folder, and returns the file for the flag.
func write(dir string) (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	original := filepath.Join(strings.TrimSpace(string(out)), "src", "time", "time.go")
	b, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	if strings.Count(string(b), now) != 1 {
		return "", fmt.Errorf("%s has another Now than this program knows", original)
	}
	changed := strings.Replace(string(b), now, now+"\tsec += skewSeconds\n", 1) +
		"\n//go:linkname skewSeconds\nvar skewSeconds int64\n"
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	replacement := filepath.Join(dir, "time.go")
	if err := os.WriteFile(replacement, []byte(changed), 0o644); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{original: replacement}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, overlay, 0o644)
}
