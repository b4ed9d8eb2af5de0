package db

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
	k := newKeeper(mem, "db", nil, commitsRecord{}, commitsRecord{uuid: uuid, sequence: 100}, true)
	for sequence := uint64(101); sequence < 106; sequence++ {
		k.reached(sequence)
		k.keep()
		b := testfs.ReadFile(t, mem, "db/COMMITS")
		if side, err := readCommits(mem, "db"); err != nil || side.sequence != sequence || side.uuid != uuid {
			t.Fatalf("%+v, %v", side, err)
		}
		for at := range b {
			if at%97 != int(sequence)%97 {
				continue
			}
			bad := bytes.Clone(b)
			bad[at] ^= 1
			testfs.WriteFile(t, mem, "db/COMMITS", bad)
			if side, err := readCommits(mem, "db"); err != nil || (side.sequence != sequence && side.sequence != sequence-1) {
				t.Fatalf("byte %d: %+v, %v", at, side, err)
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
		k := newKeeper(mem, "db", nil, commitsRecord{}, commitsRecord{uuid: record.NewUUID()}, true)
		ctx, cancel := context.WithCancel(ctx)
		go k.run(ctx)
		says := func(want uint64) {
			t.Helper()
			synctest.Wait()
			if side, err := readCommits(mem, "db"); err != nil || side.sequence != want {
				t.Errorf("it says %d, not %d: %v", side.sequence, want, err)
			}
		}
		k.reached(1)
		k.reached(2)
		says(0)
		time.Sleep(keepDelay) // of the bubble's clock
		says(2)
		k.reached(3)
		for sequence := uint64(4); sequence < 2+keepEvery; sequence++ {
			k.reached(sequence)
		}
		says(2)
		k.reached(2 + keepEvery)
		says(2 + keepEvery)
		k.reached(3 + keepEvery)
		cancel()
		says(2 + keepEvery)
		k.close()
		says(3 + keepEvery)
	})
}

func TestLossesAreBounded(t *testing.T) {
	var losses []loss
	for i := range uint64(3 * maxLosses) {
		losses = addLoss(losses, loss{found: time.Now(), first: 10*i + 1, last: 10*i + 5})
	}
	r := commitsRecord{write: 7, uuid: record.NewUUID(), sequence: 9, losses: losses}
	back, err := decodeCommitsSlot(r.slot())
	if err != nil || len(back.losses) != maxLosses || back.losses[0].first != 1 || !slices.Equal(back.losses, losses) {
		t.Errorf("%+v, %v", back, err)
	}
}

func FuzzCommitsSlot(f *testing.F) {
	r := commitsRecord{write: 3, uuid: record.NewUUID(), sequence: 77, losses: []loss{{found: time.UnixMilli(5).UTC(), first: 2, last: 9}}}
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
		if err != nil || back.sequence != r.sequence || back.write != r.write || back.uuid != r.uuid || !slices.Equal(back.losses, r.losses) {
			t.Fatalf("%+v, %+v, %v", r, back, err)
		}
	})
}
