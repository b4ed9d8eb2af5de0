package db_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// Whatever is damaged, and however much: what a repair makes is sound. With -soak it goes on
// for that long.
func TestRepairOfRandomDamage(t *testing.T) {
	dbkit.LongTest(t)
	whole := newPatient(t)
	keys := slices.Sorted(maps.Keys(whole.before.stored))
	until := time.Now().Add(*dbkit.Soak)
	rounds, refused, silent := 12, 0, 0
	first := seed.From(t, 1)
	round := 0
	for ; round < rounds || *dbkit.Soak > 0 && time.Now().Before(until); round++ {
		random := rand.New(rand.NewPCG(first, uint64(round)))
		what := fmt.Sprintf("seed %d, round %d", first, round)
		p := whole.another()
		for range random.IntN(4) {
			key := keys[random.IntN(len(keys))]
			value := []byte(whole.value(key))
			switch random.IntN(3) {
			case 0:
				if firstRevision([]byte(key)) {
					continue // nothing misses it
				}
				value = nil
			case 1:
				value = value[:random.IntN(len(value)+1)]
			default:
				if len(value) > 0 {
					value[random.IntN(len(value))] ^= byte(1 + random.IntN(255))
				}
			}
			p.put([]byte(key), value)
		}
		all := p.files(func(name string) bool { return name != store.LockName })
		for range random.IntN(3) {
			name := all[random.IntN(len(all))]
			if _, err := p.fs.Stat(p.file(name)); err != nil {
				continue
			}
			if random.IntN(4) == 0 {
				must(t, p.fs.Remove(p.file(name)))
				continue
			}
			p.rewrite(p.file(name), func(b []byte) []byte {
				for range 1 + random.IntN(20) {
					if len(b) > 0 {
						b[random.IntN(len(b))] ^= byte(1 + random.IntN(255))
					}
				}
				return b
			})
		}
		switch lost, r := p.repairOrRefuse(); {
		case r == nil:
			refused++
			continue
		case len(lost) == 0:
			silent++ // though bytes of a value may be those of another one
		}
		p.sound(what, whatever)
		if t.Failed() {
			t.Fatal(what)
		}
	}
	t.Logf("seed %d: %d rounds, of %d nothing could be read, in %d nothing was lost", first, round, refused, silent)
}

// value returns what is stored under a key.
func (p *patient) value(key string) (value string) {
	p.store(func(kv *pebble.DB) {
		b, err := record.Get(kv, []byte(key))
		if err != nil {
			p.t.Fatal(err)
		}
		value = string(b)
	})
	return value
}

// FuzzRepair damages records of a database: whatever becomes of them, a repair makes a
// database that verifies and opens.
func FuzzRepair(f *testing.F) {
	whole := newPatient(f)
	var all []keyValue
	whole.store(func(kv *pebble.DB) {
		must(f, record.ForEach(kv, nil, func(key, value []byte) error {
			all = append(all, keyValue{slices.Clone(key), slices.Clone(value)})
			return nil
		}))
	})
	f.Add([]byte{})
	every := 61
	if testing.Short() {
		every = 251
	}
	for i := 0; i < len(all); i += every {
		f.Add([]byte{byte(i), byte(i >> 8), byte(i), 0, 0x81, byte(i + 7), byte(i >> 8), 1, 0, 0})
	}
	f.Fuzz(func(t *testing.T, changes []byte) {
		now := map[int][]byte{}
		for ; len(changes) >= 5 && len(now) < 16; changes = changes[5:] {
			i := int(binary.LittleEndian.Uint16(changes)) % len(all)
			at := int(binary.LittleEndian.Uint16(changes[2:]))
			value, changed := now[i]
			if !changed {
				value = slices.Clone(all[i].value)
			}
			switch {
			case len(value) == 0:
				value = nil
			case changes[4] == 0: // cut
				value = value[:at%len(value)]
			default:
				value[at%len(value)] ^= changes[4]
			}
			now[i] = value
		}
		healthy := *whole
		healthy.t = t
		p := healthy.another()
		p.store(func(kv *pebble.DB) {
			b := kv.NewBatch()
			for i, value := range now {
				err := b.Delete(all[i].key, nil)
				if value != nil {
					err = b.Set(all[i].key, value, nil)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			must(t, b.Commit(pebble.Sync))
		})
		_, err := db.Repair(ctx, p.dir, p.options(), db.RepairOptions{}, func(found db.Finding) error {
			_ = found.String()
			return nil
		})
		if err != nil {
			if strings.Contains(err.Error(), db.ErrFormat.Error()) {
				return // the record that says which it is
			}
			t.Fatal(err)
		}
		dbkit.MustClose(t, dbkit.MustOpen(t, p.dir, p.options()))
	})
}
