package joins

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/experiments/common"
)

func TestJoins(t *testing.T) {
	var out, errs bytes.Buffer
	args := []string{"--bits", "64,256", "--items", "3000"}
	err := common.Execute(t.Context(), Command(), args, &out, &errs)
	if rows := strings.Count(out.String(), "\n"); err != nil || rows != 2+4 {
		t.Errorf("%v, %d lines:\n%s%s", err, rows, out.String(), errs.String())
	}
}
