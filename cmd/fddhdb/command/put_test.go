package command

import (
	"testing"
)

// In a trained collection put shows where the code comes from.
func TestPutCode(t *testing.T) {
	f := newFixture(t, 40, true)
	for _, c := range []struct {
		args []string
		from string
	}{
		{[]string{"--labels", "label1"}, "labels"},
		{[]string{"--labels", "label1,never seen"}, "labels"},
		{[]string{"--vector", "text=1,2,3,4,5"}, "fused"},
		{[]string{"--labels", "never seen", "--vector", "text=1,2,3,4,5"}, "fused"},
		{nil, ""},
	} {
		var got itemCode
		mustJSON(t, &got, append([]string{"put", f.db, "x"}, c.args...)...)
		if got.CodeFrom != c.from || (got.Code == "") != (c.from == "") {
			t.Errorf("%q: code %q from %q, want from %q", c.args, got.Code, got.CodeFrom, c.from)
		}
	}
}

// itemCode is what get and put --json print of the code of an item.
type itemCode struct {
	Code     string `json:"code"`
	CodeFrom string `json:"code_from"`
}
