package cluster_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
)

// A client asks the node in its program without a message, and others where that does not have a shard any
// more, or is closed.
func TestNodeInTheProgram(t *testing.T) {
	h := build(t, 1, 2, 4, 2)
	far := h.connect()
	codesOf(t, far)
	putSome(t, far, 0, 300)
	h.inStep(2, 300)
	nc := h.conn("embedding")
	if _, err := cluster.Connect(t.Context(), nc, "other",
		cluster.ClientOptions{Node: h.nodes["n0"]}); !errors.Is(err, db.ErrInvalid) {
		t.Error(err)
	}
	near, err := cluster.Connect(t.Context(), nc, "test", cluster.ClientOptions{Node: h.nodes["n0"]})
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	compare := func(what string) {
		t.Helper()
		for i := range 20 {
			q := cluster.Query{Query: db.Query{Code: []byte{byte(i), 0}, K: 30, Include: db.IncludeLabels}}
			want, err := far.Collection("codes").Search(t.Context(), q)
			got, nerr := near.Collection("codes").Search(t.Context(), q)
			if err != nil || nerr != nil {
				t.Fatal(what, err, nerr)
			}
			same := func(a, b db.Hit) bool {
				return a.Key == b.Key && a.Distance == b.Distance &&
					slices.Equal(a.Item.Labels, b.Item.Labels)
			}
			if !slices.EqualFunc(got.Hits, want.Hits, same) || got.Next != want.Next {
				t.Fatalf("%s: %+v, want %+v", what, got, want)
			}
		}
	}
	before := nc.Stats().OutMsgs
	compare("at home")
	if it, err := near.Collection("codes").Get(t.Context(), "k7"); err != nil || it.Labels[0] != "l7" {
		t.Error(it, err)
	}
	if _, err := near.Collection("codes").Get(t.Context(), "none"); !errors.Is(err, db.ErrNotFound) {
		t.Error(err)
	}
	// of those that others were asked as well
	if sent, late := nc.Stats().OutMsgs-before, near.Figures().Hedges; sent > 2*late {
		t.Errorf("%d messages, %d requests that were late", sent, late)
	}
	for i := range 50 { // it reads what it has written, with the node in its program or another one
		key := fmt.Sprint("new", i)
		if _, err := near.Collection("codes").Put(t.Context(),
			&db.Item{Key: key, Code: []byte{byte(i), 9}}); err != nil {
			t.Fatal(err)
		}
		if _, err := near.Collection("codes").Get(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	h.open("n2")
	eventually(t, "n2 takes over", func() bool { return far.Move(t.Context(), 1, "n0", "n2", nil) == nil })
	h.inStep(2, 350)
	before = nc.Stats().OutMsgs
	compare("with a shard that has moved")
	if sent := nc.Stats().OutMsgs - before; sent == 0 {
		t.Error("no message to where the shard is")
	}
	h.leave("n0")
	compare("without the node")
}
