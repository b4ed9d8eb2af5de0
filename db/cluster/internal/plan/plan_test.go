package plan

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
)

func TestMain(m *testing.M) {
	natsproc.Main()
	os.Exit(m.Run())
}

// open returns plans of a cluster with so many shards.
func open(t *testing.T, shards, plans int) (all []*Plan) {
	t.Helper()
	g, err := natsproc.Start(t.Context(), natsproc.Config{Dir: filepath.Join(t.TempDir(), "nats"),
		Servers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	nc, err := nats.Connect(g.URL(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	placed := make([]Placement, shards)
	for i := range placed {
		placed[i].Nodes = []string{"a"}
	}
	if err := Make(t.Context(), js, "test", Settings{ID: "id", Shards: shards, Replicas: 1, Servers: 1},
		placed); err != nil {
		t.Fatal(err)
	}
	for range plans {
		p, err := Open(t.Context(), js, "test")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		all = append(all, p)
	}
	return all
}

func numbers(from, n int) (all []int) {
	for i := range n {
		all = append(all, from+i)
	}
	return all
}

// A shard that was removed leaves nothing for long, and before the plan cannot be read any more there is no
// room.
func TestRoom(t *testing.T) {
	defer func(was time.Duration) { marked = was }(marked)
	marked = time.Second // the least that servers take
	p := open(t, 3, 1)[0]
	c, err := p.Claim(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	const most = mostKeys - otherKeys
	for shard := 3; shard < most; shard++ {
		if err := c.Place(t.Context(), shard, Placement{Nodes: []string{"a"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Fresh(t.Context(), settingsKey, 1); err != nil {
		t.Fatal("a plan that is full cannot be read:", err)
	}
	if err := p.Room(t.Context(), numbers(most-5, 5)); err != nil {
		t.Error("what it has needs no more room:", err)
	}
	if err := p.Room(t.Context(), numbers(most, 1)); !errors.Is(err, db.ErrFull) {
		t.Error(err)
	}
	for shard := most - 10; shard < most; shard++ {
		if err := c.Remove(t.Context(), shard); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Room(t.Context(), numbers(most, 5)); !errors.Is(err, db.ErrFull) {
		t.Error("markers do not count:", err)
	}
	for end := time.Now().Add(20 * time.Second); p.Room(t.Context(), numbers(most, 10)) != nil; time.Sleep(
		100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("markers stay:", p.Room(t.Context(), numbers(most, 10)))
		}
	}
	if keys, err := p.keys(t.Context()); err != nil || len(keys) != most-10 {
		t.Error(len(keys), err)
	}
	for shard := most; shard < most+13; shard++ {
		if err := c.Place(t.Context(), shard, Placement{Nodes: []string{"a"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Look(t.Context()); !errors.Is(err, db.ErrFull) {
		t.Error("a plan that is too large:", err)
	}
}

// Who has claimed the plan later changes it, and what the one before does then is refused.
func TestClaims(t *testing.T) {
	plans := open(t, 1, 2)
	var claims []*Claim
	is := func(base string) Placement { return Placement{Nodes: []string{"a"}, Base: base, Split: true} }
	for i, p := range plans {
		c, err := p.Claim(t.Context(), uint64(10+i))
		if err != nil {
			t.Fatal(err)
		}
		claims = append(claims, c)
		if i == 0 {
			for shard := 1; shard <= 2; shard++ {
				if err := errors.Join(c.Place(t.Context(), shard, is("first")),
					c.Check(t.Context())); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	old, now := claims[0], claims[1]
	if err := plans[1].Look(t.Context()); err != nil || plans[1].Placement(2).Base != "first" {
		t.Fatal(err)
	}
	if _, err := now.Take(t.Context(), 1); err != nil {
		t.Error(err)
	}
	if err := now.Place(t.Context(), 2, is("second")); err != nil {
		t.Error(err)
	}
	grown := Grown{Layout: Layout{1, 2}, Starts: make([]uint64, 2)}
	for what, err := range map[string]error{
		"check": old.Check(t.Context()), "place": old.Place(t.Context(), 2, is("third")),
		"remove": old.Remove(t.Context(), 1), "grow": old.Grow(t.Context(), grown),
	} {
		if !errors.Is(err, db.ErrConflict) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := plans[0].Claim(t.Context(), 10); !errors.Is(err, db.ErrConflict) {
		t.Error(err)
	}
	if err := errors.Join(now.Check(t.Context()), now.Grow(t.Context(), grown), now.Grow(t.Context(), grown),
		now.Remove(t.Context(), 0)); err != nil {
		t.Fatal(err)
	}
	for _, p := range plans {
		if err := p.Look(t.Context()); err != nil || p.Placement(2).Base != "second" || len(p.Shards()) != 2 {
			t.Error(p.Shards(), p.Placement(2), err)
		}
	}
}
