package command

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
)

// What a verb shows with -h fits on a screen, and ends in where the rest is.
func TestShortHelpFitsOnAScreen(t *testing.T) {
	root := rootCommand(newTestEnv())
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		for _, verb := range c.Commands() {
			check(verb)
		}
		var out strings.Builder
		c.SetOut(&out)
		c.InitDefaultHelpFlag()
		clitest.Check(t, c.Help())
		lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
		if last := lines[len(lines)-1]; len(lines) > 30 || !strings.HasPrefix(last, "fddhdb help") {
			t.Errorf("%s -h has %d lines, and ends in %q", c.CommandPath(), len(lines), last)
		}
		for _, line := range lines {
			if len(line) > 100 {
				t.Errorf("%s -h: a line of %d bytes: %s", c.CommandPath(), len(line), line)
			}
		}
	}
	check(root)
}
