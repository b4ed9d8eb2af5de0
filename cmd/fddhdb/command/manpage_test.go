package command

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
)

func TestManPage(t *testing.T) {
	var page bytes.Buffer
	clitest.Check(t, ManPage(&page))
	stored := clitest.Must(os.ReadFile("../../../docs/man/fddhdb.1"))(t)
	if !bytes.Equal(bytes.ReplaceAll(stored, []byte("\r\n"), []byte("\n")), page.Bytes()) {
		t.Error("docs/man/fddhdb.1 is stale: make man writes it again")
	}
	for _, c := range rootCommand(newTestEnv()).Commands() {
		if want := ".SS fddhdb " + roff(c.Use) + "\n"; !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("no groff to render the page")
	}
	cmd := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z")
	cmd.Stdin = &page
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("groff: %v: %s", err, out)
	}
}
