package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
)

func TestMain(m *testing.M) {
	natsproc.Main()
	os.Exit(m.Run())
}

type bed struct {
	t       *testing.T
	servers *natsproc.Group
	js      jetstream.JetStream
	*journal.Journal
}

func newBed(t *testing.T, c journal.Config) *bed {
	t.Helper()
	servers, err := natsproc.Start(t.Context(), natsproc.Config{Dir: t.TempDir(), Servers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Close)
	nc, err := nats.Connect(servers.URL(0), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t, servers, js, journal.New(js, "test", 3)}
	c.Replicas = 1
	if err := b.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bed) append(from, to int) {
	b.t.Helper()
	for i := from; i < to; i++ {
		id, data := fmt.Sprint("id", i), fmt.Append(nil, "m", i)
		seq, _, err := b.Append(b.t.Context(), id, journal.Writes, data, "")
		if err != nil || seq != uint64(i) {
			b.t.Fatal(i, seq, err)
		}
	}
}

// A log is made once: an empty one again, as other settings say, and one with messages never.
func TestCreate(t *testing.T) {
	b := newBed(t, journal.Config{MaxBytes: 1 << 20})
	first := func() uint64 {
		t.Helper()
		info, err := b.Info(t.Context())
		if err != nil || info.Last+1 != info.First {
			t.Fatal(info, err)
		}
		return info.First
	}
	if n := first(); n != 1 {
		t.Error(n)
	}
	for _, c := range []journal.Config{{Replicas: 1, MaxBytes: 1 << 20},
		{Replicas: 1, MaxBytes: 2 << 20, FirstSeq: 100}, {Replicas: 1, MaxBytes: 2 << 20, FirstSeq: 100}} {
		if err := b.Create(t.Context(), c); err != nil || first() != max(c.FirstSeq, 1) {
			t.Error(c, err)
		}
	}
	b.append(100, 101)
	err := b.Create(t.Context(), journal.Config{Replicas: 1, MaxBytes: 2 << 20, FirstSeq: 100})
	if !errors.Is(err, db.ErrExists) || !strings.Contains(err.Error(), "FDDHDB_test_3 has 1 messages") {
		t.Error(err)
	}
	if err := b.Create(t.Context(), journal.Config{Replicas: 1, MaxBytes: 100 << 40}); err == nil ||
		!strings.Contains(err.Error(), "log of shard 3") {
		t.Error(err)
	}
}

// A message is in the log once, however often it is appended, and is read as it was written.
func TestAppend(t *testing.T) {
	b := newBed(t, journal.Config{MaxBytes: 1 << 20})
	if _, err := b.At(t.Context(), 1); !errors.Is(err, journal.ErrNone) {
		t.Error(err)
	}
	for i := range 3 {
		seq, tries, err := b.Append(t.Context(), "same", journal.Control, []byte("hello"), "_INBOX.x")
		if seq != 1 || tries != 1 || err != nil {
			t.Error(i, seq, tries, err)
		}
	}
	if seq, _, err := b.Append(t.Context(), "skip", journal.Skips, []byte("2"), ""); seq != 2 || err != nil {
		t.Error(seq, err)
	}
	b.append(3, 5)
	var all []journal.Read
	err := b.All(t.Context(), func(some []journal.Read) error { all = append(all, some...); return nil })
	if err != nil || len(all) != 4 {
		t.Fatal(all, err)
	}
	for i, m := range all {
		if m.Seq != uint64(i+1) || m.Control != (i < 2) || (m.Reply == "_INBOX.x") != (i == 0) {
			t.Errorf("%+v", m)
		}
	}
	if m, err := b.At(t.Context(), 3); err != nil || string(m.Data) != "m3" {
		t.Error(m, err)
	}
	if some, err := b.Skips(t.Context()); err != nil || len(some) != 1 || some[0].Seq != 2 {
		t.Error(some, err)
	}
	why := errors.New("enough")
	if err := b.All(t.Context(), func([]journal.Read) error { return why }); !errors.Is(err, why) {
		t.Error(err)
	}
	if _, tries, err := b.Append(t.Context(), "large", journal.Writes, make([]byte, 2<<20), ""); tries != 0 ||
		!errors.Is(err, nats.ErrMaxPayload) {
		t.Error(tries, err)
	}
	if err := b.servers.Kill(0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	if _, _, err := b.Append(ctx, "gone", journal.Writes, []byte("x"), ""); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Error(err)
	}
}

// A full log refuses messages, which are not in it then, until it is trimmed.
func TestFullAndTrimmed(t *testing.T) {
	b := newBed(t, journal.Config{MaxBytes: 64 << 10})
	if some, err := b.Skips(t.Context()); err != nil || len(some) > 0 {
		t.Error(some, err)
	}
	data := bytes.Repeat([]byte("x"), 10_000)
	n := uint64(0)
	for {
		seq, tries, err := b.Append(t.Context(), fmt.Sprint(n), journal.Writes, data, "")
		if errors.Is(err, journal.ErrFull) {
			if tries != 0 || n < 5 {
				t.Errorf("message %d: %d tries", n, tries)
			}
			break
		}
		if n++; err != nil || seq != n {
			t.Fatal(seq, err)
		}
	}
	for _, before := range []uint64{0, 1, 4, 3} {
		if err := b.Trim(t.Context(), before); err != nil {
			t.Fatal(before, err)
		}
	}
	info, err := b.Info(t.Context())
	if err != nil || info.First != 4 || info.Last != n {
		t.Fatalf("%+v, %v", info, err)
	}
	if _, err := b.At(t.Context(), 3); !errors.Is(err, journal.ErrNone) {
		t.Error(err)
	}
	if seq, _, err := b.Append(t.Context(), "new", journal.Writes, data, ""); seq != n+1 || err != nil {
		t.Error(seq, err)
	}
	// The last message stays, so that the next one has the next number.
	if err := b.Trim(t.Context(), n+100); err != nil {
		t.Fatal(err)
	}
	if info, err := b.Info(t.Context()); err != nil || info.First != n+1 || info.Last != n+1 {
		t.Errorf("%+v, %v", info, err)
	}
}

// Follow gives each message once, in order and soon, also after the server was away.
func TestFollow(t *testing.T) {
	b := newBed(t, journal.Config{MaxBytes: 16 << 20})
	b.append(1, 2500) // several batches
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan uint64, 10_000)
	done := make(chan error, 1)
	go func() {
		done <- b.Follow(ctx, 7, func(some []journal.Read) error {
			for _, m := range some {
				if string(m.Data) != fmt.Sprint("m", m.Seq) {
					t.Errorf("message %d: %q", m.Seq, m.Data)
				}
				got <- m.Seq
			}
			return nil
		})
	}()
	next := uint64(7)
	until := func(last uint64) {
		t.Helper()
		for ; next <= last; next++ {
			select {
			case seq := <-got:
				if seq != next {
					t.Fatalf("message %d, not %d", seq, next)
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("message %d does not come", next)
			}
		}
	}
	until(2499)
	for i := 2500; i < 2510; i++ {
		b.append(i, i+1)
		until(uint64(i))
	}
	for deadline := time.Now().Add(30 * time.Second); b.Told() != 2509; { // a tick may come after its message
		if time.Now().After(deadline) {
			t.Fatal(b.Told())
		}
		time.Sleep(time.Millisecond)
	}
	if err := b.servers.Kill(0); err != nil {
		t.Fatal(err)
	}
	if err := b.servers.Restart(0); err != nil {
		t.Fatal(err)
	}
	b.append(2510, 2520)
	until(2519)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	why := errors.New("enough")
	if err := b.Follow(t.Context(), 1, func([]journal.Read) error { return why }); !errors.Is(err, why) {
		t.Error(err)
	}
}
