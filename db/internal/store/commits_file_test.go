package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/testfs"
)

// A crash while the side file is written, and a torn or damaged slot, leave the record
// before it.
func TestSideFileKeepsTheOlderRecord(t *testing.T) {
	mem := vfs.NewMem()
	uuid := record.NewUUID()
	if err := mem.MkdirAll("db", 0o755); err != nil {
		t.Fatal(err)
	}
	k := NewKeeper(mem, "db", nil, Commits{}, Commits{UUID: uuid, Sequence: 100}, true)
	for sequence := uint64(101); sequence < 106; sequence++ {
		k.Reached(sequence)
		k.Keep()
		b := testfs.ReadFile(t, mem, "db/COMMITS")
		if side, err := ReadCommits(mem, "db"); err != nil || side.Sequence != sequence || side.UUID != uuid {
			t.Fatalf("%+v, %v", side, err)
		}
		// Whatever is damaged of one slot, the other one counts. Each byte has its turn in one of five
		// rounds.
		for at := int(sequence % 5); at < len(b); at += 5 {
			want, err := decodeCommitsSlot(b[:commitsSlot])
			if at < commitsSlot {
				want, err = decodeCommitsSlot(b[commitsSlot:])
			}
			bad := bytes.Clone(b)
			bad[at] ^= 1 << (at % 8)
			testfs.WriteFile(t, mem, "db/COMMITS", bad)
			side, rerr := ReadCommits(mem, "db")
			if err != nil || rerr != nil || side.Sequence != want.Sequence || side.UUID != uuid ||
				side.write != want.write {
				t.Fatalf("byte %d: %+v, want %+v, %v, %v", at, side, want, err, rerr)
			}
		}
		testfs.WriteFile(t, mem, "db/COMMITS", b)
		k.file = nil // the one that was open is another
	}
}

// The side file follows within a second, or a thousand commits.
func TestSideFileFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		if err := mem.MkdirAll("db", 0o755); err != nil {
			t.Fatal(err)
		}
		k := NewKeeper(mem, "db", nil, Commits{}, Commits{UUID: record.NewUUID()}, true)
		ctx, cancel := context.WithCancel(t.Context())
		go k.Run(ctx)
		says := func(want uint64) {
			t.Helper()
			synctest.Wait()
			if side, err := ReadCommits(mem, "db"); err != nil || side.Sequence != want {
				t.Errorf("it says %d, not %d: %v", side.Sequence, want, err)
			}
		}
		k.Reached(1)
		k.Reached(2)
		says(0)
		time.Sleep(keepDelay) // of the bubble's clock
		says(2)
		k.Reached(3)
		for sequence := uint64(4); sequence < 2+keepEvery; sequence++ {
			k.Reached(sequence)
		}
		says(2)
		k.Reached(2 + keepEvery)
		says(2 + keepEvery)
		k.Reached(3 + keepEvery)
		cancel()
		says(2 + keepEvery)
		k.Close()
		says(3 + keepEvery)
	})
}

func TestLossesAreBounded(t *testing.T) {
	var losses []report.Loss
	for i := range uint64(3 * maxLosses) {
		losses = addLoss(losses, report.Loss{Found: time.UnixMilli(5).UTC(), First: 10*i + 1, Last: 10*i + 5})
	}
	r := Commits{write: 7, UUID: record.NewUUID(), Sequence: 9, Losses: losses}
	back, err := decodeCommitsSlot(r.slot())
	if err != nil || len(back.Losses) != maxLosses || back.Losses[0].First != 1 ||
		!slices.Equal(back.Losses, losses) {
		t.Errorf("%+v, %v", back, err)
	}
}

func FuzzCommitsSlot(f *testing.F) {
	r := Commits{write: 3, UUID: record.NewUUID(), Sequence: 77,
		Losses: []report.Loss{{Found: time.UnixMilli(5).UTC(), First: 2, Last: 9}}}
	f.Add(r.slot())
	f.Add(binary.LittleEndian.AppendUint32(nil, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeCommitsSlot(b)
		if err != nil {
			if !errors.Is(err, codec.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		back, err := decodeCommitsSlot(r.slot())
		if err != nil || back.Sequence != r.Sequence || back.write != r.write || back.UUID != r.UUID ||
			!slices.Equal(back.Losses, r.Losses) {
			t.Fatalf("%+v, %+v, %v", r, back, err)
		}
	})
}
