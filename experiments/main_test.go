package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/experiments/common"
)

// Each experiment has a name of its own, says what it does, and explains its flags.
func TestHelp(t *testing.T) {
	var names []string
	for _, cmd := range experiments() {
		if slices.Contains(names, cmd.Name()) || cmd.Short == "" {
			t.Errorf("%s: %q", cmd.Name(), cmd.Short)
		}
		names = append(names, cmd.Name())
		var out bytes.Buffer
		if err := common.Execute(t.Context(), cmd, []string{"--help"}, &out, &out); err != nil ||
			!strings.HasPrefix(out.String(), cmd.Short+".") {
			t.Errorf("%s: %v: %s", cmd.Name(), err, out.String())
		}
	}
}
