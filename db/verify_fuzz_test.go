package db_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/effort"
)

// FuzzVerify changes bytes of what a small database has stored, wherever the input says:
// it is verified without a panic, whatever is found.
func FuzzVerify(f *testing.F) {
	d := verified(f, &db.Options{FS: vfs.NewMem()})
	all := records(f, d)
	f.Add([]byte{0, 0, 0, 0, 1})
	f.Add([]byte{1, 0, 3, 0, 255, 40, 0, 0, 0, 7})
	f.Add(bytes.Repeat([]byte{3, 1, 1, 0, 128, 77, 0, 2, 0, 3}, 20))
	seen := map[byte]bool{}
	for i := range all { // each record once: its length, or whatever stands at its start and end
		kind := all[i].key[0]
		if seen[kind] && (testing.Short() || !effort.Sampled(i, 19)) {
			continue // one of each kind
		}
		seen[kind] = true
		f.Add(binary.LittleEndian.AppendUint16([]byte{byte(i), byte(i >> 8), 1, 0, 0x81, byte(i), byte(i >> 8)}, uint16(len(all[i].value)-1)))
	}
	f.Fuzz(func(t *testing.T, changes []byte) {
		changed := map[int]bool{}
		now := map[int][]byte{}
		for ; len(changes) >= 5 && len(changed) < 16; changes = changes[5:] {
			i := int(binary.LittleEndian.Uint16(changes)) % len(all)
			at := int(binary.LittleEndian.Uint16(changes[2:]))
			if !changed[i] {
				changed[i], now[i] = true, slices.Clone(all[i].value)
			}
			switch value := now[i]; {
			case len(value) == 0:
			case changes[4] == 0: // cut
				now[i] = value[:at%len(value)]
			default:
				value[at%len(value)] ^= changes[4]
			}
		}
		for i, value := range now {
			keyValue{all[i].key, append([]byte{}, value...)}.put(t, d)
			defer all[i].put(t, d)
		}
		v, err := d.Verify(ctx, db.VerifyOptions{Deep: true}, func(found db.Finding) error {
			_ = found.String()
			return nil
		})
		if err != nil {
			t.Fatal(err) // a panic is one
		}
		if len(changed) == 0 && v.Findings > 0 {
			t.Errorf("nothing has changed, %d findings", v.Findings)
		}
	})
}
