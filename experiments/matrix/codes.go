package matrix

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/files/npy"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// A cell is a set of codes with its queries.
type cell struct {
	set     synth.CodeSet
	bits, n int
	queries int // number of queries of each kind
	seed    uint64
}

func (c *cell) String() string {
	return fmt.Sprintf("%s, %d bits, %d items", c.set.Name(), c.bits, c.n)
}

// codesCommand writes the files of a set.
func codesCommand() *cobra.Command {
	c := cell{bits: 128, queries: 1000, seed: 1, n: 1_000_000}
	sets, dir := setList{synth.Uniform}, ""
	cmd := common.New("codes", "Write the files of a set of codes",
		"The folder gets items.npy, members.npy, fresh.npy and both.npy.", cobra.NoArgs,
		func(cmd *cobra.Command, _ []string) error {
			for _, set := range sets {
				c.set = set
				if err := c.write(dir); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", &c, itemsFile(dir))
			}
			return nil
		})
	f := common.FlagsOf(cmd)
	f.Var(&sets, "sets", "letter of the set: U, C, L or S")
	f.Bits(&c.bits)
	f.Count(&c.n, "items", "number of items")
	f.Queries(&c.queries)
	f.Seed(&c.seed)
	f.StringVar(&dir, "dir", ".", "folder to write to")
	return cmd
}

func itemsFile(dir string) string       { return filepath.Join(dir, "items.npy") }
func queryFile(dir, kind string) string { return filepath.Join(dir, kind+".npy") }

// write writes the files of the cell into the folder dir.
func (c *cell) write(dir string) error {
	items, err := synth.Codes(c.set, c.bits, c.n, c.seed)
	if err == nil {
		err = writeCodes(itemsFile(dir), items)
	}
	if err != nil {
		return err
	}
	m, f, err := synth.CodeQueries(c.set, c.bits, c.n, c.queries, c.seed)
	if err != nil {
		return err
	}
	turns := codec.NewCodes(c.bits, c.queries)
	for i := range c.queries {
		if i%2 == 0 {
			turns.Append(m.At(i))
		} else {
			turns.Append(f.At(i))
		}
	}
	return errors.Join(
		writeCodes(queryFile(dir, members), m),
		writeCodes(queryFile(dir, fresh), f),
		writeCodes(queryFile(dir, both), turns))
}

// writeCodes writes codes as a .npy file of uint8, which fddhdb reads.
func writeCodes(path string, codes codec.Codes) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w, err := npy.NewWriter[uint8](f, codes.Len(), codec.Bytes(codes.Bits()))
	if err != nil {
		return errors.Join(err, f.Close())
	}
	var row []byte
	for i := range codes.Len() {
		row = codes.At(i).AppendBytes(row[:0], codes.Bits())
		if err := w.Write(row); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(w.Close(), f.Close())
}
