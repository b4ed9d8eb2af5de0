package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The formula names each archive with its sum, and installs files that archives have.
func TestFormula(t *testing.T) {
	sums := map[string]string{}
	for i, p := range platforms {
		sums[archiveName("v1.2.3", p)] = strings.Repeat(fmt.Sprint(i), 64)
	}
	text, err := formula("v1.2.3", sums)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range platforms {
		want := fmt.Sprintf("url \"https://github.com/fddhdb/fddhdb/releases/download/v1.2.3/fddhdb-1.2.3-%s-%s.tar.gz\"\n      sha256 \"%s\"",
			p.os, p.arch, strings.Repeat(fmt.Sprint(i), 64))
		if p.os != "windows" && !strings.Contains(text, want) {
			t.Errorf("%s/%s is not in it:\n%s", p.os, p.arch, text)
		}
	}
	for _, f := range besidesForTests() {
		if documents := f.name == "LICENSE" || f.name == "CHANGELOG.md"; !documents &&
			!strings.Contains(text, `install "`+f.name+`"`) {
			t.Errorf("%s is not installed", f.name)
		}
	}
	delete(sums, "fddhdb-1.2.3-linux-arm64.tar.gz")
	if _, err := formula("v1.2.3", sums); err == nil {
		t.Error("a formula without one of its archives")
	}
	ruby, err := exec.LookPath("ruby")
	if err != nil {
		t.Skip("there is no ruby to read the formula")
	}
	path := filepath.Join(t.TempDir(), "fddhdb.rb")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), ruby, "-c", path).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, text)
	}
}
