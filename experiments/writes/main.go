package writes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// A config says what both sides write.
type config struct {
	goroutines common.Ints
	bits       int           // of a code
	payload    uint          // bytes of an item
	long       time.Duration // how long each side writes
	dir        string        // for the folders of both
	rounds     int
}

// A writer writes the n-th item, durably.
type writer func(ctx context.Context, n int) error

// Command returns the experiment.
func Command() *cobra.Command {
	c := config{goroutines: common.Ints{1, 4, 16}, bits: 128, rounds: 5}
	cmd := common.New("writes", "Measure synced writes beside the storage engine alone",
		"Both sides run in turns, each on an empty store. The folder is to be on the disk that is measured.",
		cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
			return c.measure(cmd.Context(),
				cmd.OutOrStdout())
		})
	f := common.FlagsOf(cmd)
	f.Counts(&c.goroutines, "goroutines", "numbers of goroutines")
	f.Bits(&c.bits)
	f.UintVar(&c.payload, "payload", 100, "bytes of the payload of an item")
	f.DurationVar(&c.long, "for", time.Second, "how long each side writes in a round")
	f.Dir(&c.dir)
	f.Rounds(&c.rounds)
	return cmd
}

// measure prints a table.
func (c *config) measure(ctx context.Context, stdout io.Writer) error {
	if c.long <= 0 {
		return errors.New("--for: a positive duration is expected")
	}
	codes, err := synth.Codes(synth.Uniform, c.bits, 100_000, 1)
	if err != nil {
		return err
	}
	common.Head(stdout, 0, "goroutines", "Put, a second", "Pebble, a second", "ratio")
	for _, n := range c.goroutines {
		var ours, raw, ratios []float64
		for range c.rounds {
			a, err := c.inFolder(ctx, n, codes, c.put)
			if err != nil {
				return err
			}
			b, err := c.inFolder(ctx, n, codes, c.pebble)
			if err != nil {
				return err
			}
			ours, raw, ratios = append(ours, a), append(raw, b), append(ratios, a/b)
		}
		common.Row(stdout, strconv.Itoa(n), fmt.Sprintf("%.0f", common.Median(ours)),
			fmt.Sprintf("%.0f", common.Median(raw)), fmt.Sprintf("%.2f", common.Median(ratios)))
	}
	return nil
}

// inFolder measures one side in a folder of its own, which it removes.
func (c *config) inFolder(ctx context.Context, goroutines int, codes codec.Codes,
	side func(context.Context, string, codec.Codes, func(writer) error) error) (rate float64, err error) {
	dir, err := os.MkdirTemp(c.dir, "writes")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	err = side(ctx, dir, codes, func(w writer) (err error) {
		rate, err = c.rate(ctx, goroutines, w)
		return err
	})
	return rate, err
}

// rate returns how many items a second so many goroutines write.
func (c *config) rate(ctx context.Context, goroutines int, w writer) (float64, error) {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var group sync.WaitGroup
	start := time.Now()
	for range goroutines {
		group.Go(func() {
			for time.Since(start) < c.long && failed.Load() == nil {
				if err := w(ctx, int(next.Add(1))); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(next.Load()) / time.Since(start).Seconds(), nil
}

// put writes items by Put.
func (c *config) put(ctx context.Context, dir string, codes codec.Codes,
	measured func(writer) error) (err error) {
	d, err := db.Open(dir+"/db", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	main, err := d.CreateCollection(ctx, "main", db.Schema{Bits: c.bits})
	if err != nil {
		return err
	}
	payload := make([]byte, c.payload)
	return measured(func(ctx context.Context, n int) error {
		it := db.Item{Key: strconv.Itoa(n), Code: codes.At(n%codes.Len()).AppendBytes(nil, c.bits),
			Payload: payload}
		_, err := main.Put(ctx, &it)
		return err
	})
}

// pebble writes the bytes of items by batches of Pebble.
func (c *config) pebble(ctx context.Context, dir string, codes codec.Codes,
	measured func(writer) error) (err error) {
	kv, err := pebble.Open(dir+"/pebble", &pebble.Options{
		FormatMajorVersion: pebble.FormatNewest,
		MemTableSize:       32 << 20, // as a database has it
		Logger:             quiet{},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kv.Close()) }()
	payload := make([]byte, c.payload)
	return measured(func(_ context.Context, n int) error {
		b := kv.NewBatch()
		defer b.Close()
		value := append(codes.At(n%codes.Len()).AppendBytes(nil, c.bits), payload...)
		if err := b.Set([]byte(strconv.Itoa(n)), value, nil); err != nil {
			return err
		}
		return b.Commit(pebble.Sync)
	})
}

// quiet is a logger of Pebble that says only what ends the process.
type quiet struct{}

func (quiet) Infof(string, ...any)         {}
func (quiet) Errorf(string, ...any)        {}
func (quiet) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
