package apply_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// Replicas take a digest of what they have when a day of the log begins: the same one in whatever steps they
// apply it, and another one if one of them has something else.
func TestDailyDigest(t *testing.T) {
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	var log []apply.Message
	add := func(op wire.Op, at time.Time) {
		op.ID = wire.NewID()
		b, err := op.Encode()
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, apply.Message{Seq: uint64(len(log) + 1), Data: b, Time: at,
			Control: op.Kind != wire.Write})
	}
	put := func(i int, at time.Time) {
		add(wire.Op{Kind: wire.Write, Changes: []wire.Change{{Collection: "c", Kind: wire.Put,
			Item: &wire.Item{Key: fmt.Sprint(i), Code: []byte{byte(i)}}}}}, at)
	}
	add(wire.Op{Kind: wire.CreateCollection, Collection: "c", Schema: &db.Schema{Bits: 8}}, day)
	for i := range 300 { // the 250th is the first of the second day
		put(i, day.Add(time.Duration(i)*24*time.Hour/249))
	}
	run := func(step int, damage bool) (seq, sum uint64) {
		t.Helper()
		d := dbkit.MustOpen(t, t.TempDir(), nil)
		defer dbkit.MustClose(t, d)
		s, err := apply.Open(t.Context(), d, apply.Identity{Cluster: "c", Shard: 0, Shards: 1})
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(log); at += step {
			if at == 100 {
				if seq, _ := s.Checked(); seq > 0 {
					t.Error("checked on the first day")
				}
			}
			if damage && at == 100 {
				c, err := d.Collection("c")
				if err == nil {
					_, err = c.Put(t.Context(), &db.Item{Key: "5", Code: []byte{99}})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Apply(t.Context(), log[at:min(at+step, len(log))]); err != nil {
				t.Fatal(err)
			}
		}
		for seq == 0 {
			seq, sum = s.Checked()
		}
		return seq, sum
	}
	seq, sum := run(1, false)
	if seq != 250 { // the collection, and 249 items
		t.Errorf("checked behind message %d", seq)
	}
	for _, step := range []int{7, 100, 1000} {
		if n, other := run(step, false); n != seq || other != sum {
			t.Errorf("in steps of %d: %d, %x, not %d, %x", step, n, other, seq, sum)
		}
	}
	if n, other := run(50, true); n != seq || other == sum {
		t.Errorf("damaged: %d, %x", n, other)
	}
}

// A digest that has to wait for its turn shows what there was when the day began: also a collection that is
// dropped meanwhile.
func TestDailyDigestWaits(t *testing.T) {
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	run := func(turns chan struct{}) (sum uint64) {
		t.Helper()
		d := dbkit.MustOpen(t, t.TempDir(), nil)
		defer dbkit.MustClose(t, d)
		s, err := apply.Open(t.Context(), d, apply.Identity{Cluster: "c", Shard: 0, Shards: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer s.End()
		s.ShareTurns(turns)
		checked := func() (seq uint64) { seq, sum = s.Checked(); return seq }
		for i, kind := range []wire.Kind{wire.CreateCollection, wire.Compare, wire.DropCollection} {
			op := wire.Op{ID: wire.ID{byte(i)}, Kind: kind, Collection: "c", Schema: &db.Schema{Bits: 8}}
			b, err := op.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if kind == wire.DropCollection && len(turns) == 0 {
				for checked() == 0 {
					time.Sleep(time.Millisecond)
				}
			}
			_, err = s.Apply(t.Context(), []apply.Message{{Seq: uint64(i + 1), Data: b, Control: true,
				Time: day.AddDate(0, 0, min(i, 1))}})
			if err != nil {
				t.Fatal(err)
			}
		}
		if len(turns) > 0 {
			if checked() > 0 {
				t.Error("it has not waited")
			}
			<-turns
		}
		for checked() == 0 {
			time.Sleep(time.Millisecond)
		}
		return sum
	}
	busy := make(chan struct{}, 1)
	busy <- struct{}{}
	if a, b := run(make(chan struct{}, 1)), run(busy); a != b {
		t.Errorf("%x at once, %x later", a, b)
	}
}
