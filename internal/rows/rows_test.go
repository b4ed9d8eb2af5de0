package rows

import (
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

// A row shares no memory with the item that it was read from, not even for empty
// slices.
func TestRowsAreCopies(t *testing.T) {
	var r readRow
	labels, bytes := make([]string, 4), make([]byte, 4)
	r.set(&db.Item{Labels: labels[:0], Payload: bytes[:0], Code: bytes[2:2]}, nil)
	if r.item.Labels == nil || r.item.Payload == nil || r.item.Code == nil {
		t.Error("what is empty has become what is not there")
	}
	r.set(&db.Item{Labels: []string{"a"}, Payload: []byte{1}, Code: []byte{2}}, nil)
	if labels[0] != "" || bytes[0] != 0 || bytes[2] != 0 {
		t.Errorf("the row was written to where another came from: %q, %v", labels, bytes)
	}
	r.set(&db.Item{}, nil)
	if r.item.Labels != nil || r.item.Payload != nil || r.item.Code != nil || r.item.Fields != nil {
		t.Errorf("what is not there has become %v", r.item)
	}
}
