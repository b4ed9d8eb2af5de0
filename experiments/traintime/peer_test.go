package traintime

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/experiments/common"
)

// Both sides train on the same items, and tell the time of each step.
func TestCompare(t *testing.T) {
	python := ""
	for _, p := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(p, "-c", "import numpy").Run() == nil {
			python = p
		}
	}
	if python == "" {
		t.Skip("no Python with numpy: nothing to compare with")
	}
	var out strings.Builder
	if err := common.Execute(t.Context(), Command(), []string{"--peer", python, "--rounds", "1", "--items",
		"300", "--bits", "16", "--anchors", "50"}, &out, &out); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[2], "| 300 | ") ||
		strings.Count(lines[2], "|") != strings.Count(lines[1], "|") {
		t.Errorf("%s", out.String())
	}
}

func TestCompareWithoutPython(t *testing.T) {
	var out strings.Builder
	err := common.Execute(t.Context(), Command(), []string{"--peer", "no-such-python", "--items", "60",
		"--anchors", "20", "--bits", "16"}, &out, &out)
	if err == nil || !strings.Contains(err.Error(), "no-such-python") {
		t.Errorf("%v", err)
	}
	if err := common.Execute(t.Context(), Command(), []string{"--rounds", "0"}, &out, &out); err == nil {
		t.Error("-rounds 0 passes")
	}
}
