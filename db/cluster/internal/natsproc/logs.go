package natsproc

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// tailLines is how much of each log an error shows.
const tailLines = 15

// logTails returns the last lines of the log of every server.
func (g *Group) logTails() string {
	var b strings.Builder
	for i := range g.ports {
		fmt.Fprintf(&b, "--- %s\n", g.config.logFile(i))
		log, err := os.ReadFile(g.config.logFile(i))
		if err != nil {
			fmt.Fprintf(&b, "%v\n", err)
			continue
		}
		lines := bytes.Split(bytes.TrimSpace(log), []byte("\n"))
		for _, line := range lines[max(0, len(lines)-tailLines):] {
			fmt.Fprintf(&b, "%s\n", line)
		}
	}
	return b.String()
}
