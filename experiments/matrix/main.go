package matrix

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/command"
	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/files/npy"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// A matrix has the values of the flags.
type matrix struct {
	sets      setList
	bits, n   common.Ints
	queries   kind
	k, radius common.Ints
	tiers     []string
	most      int // queries
	seed      uint64
	dir       string
	write     bool // only write the files of the sets into dir
}

// Command returns the experiment.
func Command() *cobra.Command {
	m := &matrix{
		sets: synth.CodeSets(), bits: common.Ints{64, 128}, n: common.Ints{1_000_000}, queries: both,
		most: 1000, seed: 1, k: common.Ints{10}, radius: common.Ints{8},
	}
	cmd := common.New("matrix", "Measure searches over generated codes beside a scan of all codes",
		`Times are those of the median query, in microseconds; in brackets, how many times as long fullscan takes. knn finds the
nearest items with their keys; radius finds all items within so many bits, without looking at each; hits is the same, and
the first 100 of them with their keys, which fullscan does not know.`,
		cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
			return m.run(cmd.Context(), cmd.OutOrStdout())
		})
	f := common.FlagsOf(cmd)
	f.Var(&m.sets, "sets", "sets of codes: U uniform, C clustered, L learned, S signs of projections")
	f.Counts(&m.bits, "bits", "lengths of codes")
	f.Items(&m.n)
	f.Var(&m.queries, "kind", "queries: members (items with a few bits flipped), fresh, or both in turn")
	f.VarP(&m.k, "k", "k", "numbers of nearest items")
	f.Var(&m.radius, "radius", "radii")
	f.StringSliceVar(&m.tiers, "tiers", []string{auto, fullscan}, "ways to search: "+
		strings.Join(tierNames, ", "))
	f.Count(&m.most, "queries", "number of queries, at most")
	f.Seed(&m.seed)
	f.Dir(&m.dir)
	f.BoolVar(&m.write, "write", false,
		"measure nothing: write items.npy, members.npy, fresh.npy and both.npy of one set into --dir")
	return cmd
}

// run measures all sets, one after the other.
func (m *matrix) run(ctx context.Context, stdout io.Writer) error {
	for _, name := range m.tiers {
		if !slices.Contains(tierNames, name) {
			return fmt.Errorf("--tiers: there is no tier %q: there are %s", name, strings.Join(tierNames, ", "))
		}
	}
	if m.write {
		if len(m.sets) != 1 || len(m.bits) != 1 || len(m.n) != 1 || m.dir == "" {
			return errors.New("--write: give one set, one length, one number of items, and --dir")
		}
		return m.files(m.dir, m.sets[0], m.bits[0], m.n[0])
	}
	common.Head(stdout, 2, slices.Concat([]string{"set", "search", "bits", "items", "hits"}, m.tiers,
		[]string{"p99, " + m.tiers[0]})...)
	for _, n := range m.n {
		for _, bits := range m.bits {
			for _, set := range m.sets {
				if err := m.measure(ctx, stdout, set, bits, n); err != nil {
					return fmt.Errorf("%s, %d bits, %d items: %w", set.Name(), bits, n, err)
				}
			}
		}
	}
	return nil
}

// measure stores a set in a database and prints a row for each search.
func (m *matrix) measure(ctx context.Context, stdout io.Writer, set synth.CodeSet, bits,
	n int) (err error) {
	dir, err := os.MkdirTemp(m.dir, "matrix-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := m.files(dir, set, bits, n); err != nil {
		return err
	}
	path := filepath.Join(dir, "db")
	for _, args := range [][]string{{"init", path, "--codes", strconv.Itoa(bits)},
		{"import", path, "--codes", filepath.Join(dir, "items.npy")}, {"compact", path}} {
		var stderr bytes.Buffer
		if command.Main(args, strings.NewReader(""), io.Discard, &stderr) != 0 {
			return fmt.Errorf("fddhdb %s: %s", args[0], strings.TrimSpace(stderr.String()))
		}
	}
	codes, err := npy.ReadCodes(filepath.Join(dir, string(m.queries)+".npy"))
	if err != nil {
		return err
	}
	d, err := db.Open(path, &db.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return m.search(ctx, d, codes, func(group []*timed) {
		first := group[0]
		row := []string{set.String(), first.String(), strconv.Itoa(bits), strconv.Itoa(n),
			fmt.Sprintf("%.1f", first.average())}
		for _, name := range m.tiers {
			row = append(row, timesOf(group, name))
		}
		common.Row(stdout, append(row, fmt.Sprintf("%.3g", quantile(first.times, .99)))...)
	})
}

// timesOf returns the cell of a tier: the median, and how many times as long the yardstick takes.
func timesOf(group []*timed, name string) string {
	full := 0.0
	for _, s := range group {
		if s.name == fullscan {
			full = quantile(s.times, .5)
		}
	}
	for _, s := range group {
		if p50 := quantile(s.times, .5); s.name == name && full > 0 && name != fullscan {
			return fmt.Sprintf("%.3g (%.2gx)", p50, full/p50)
		} else if s.name == name {
			return fmt.Sprintf("%.3g", p50)
		}
	}
	return "-"
}

// files writes the codes of a set and its queries into a folder.
func (m *matrix) files(dir string, set synth.CodeSet, bits, n int) error {
	items, err := synth.Codes(set, bits, n, m.seed)
	if err != nil {
		return err
	}
	near, far, err := synth.CodeQueries(set, bits, n, m.most, m.seed)
	if err != nil {
		return err
	}
	turns := codec.NewCodes(bits, m.most)
	for i := range m.most {
		turns.Append([]codec.Codes{near, far}[i%2].At(i))
	}
	return errors.Join(
		writeCodes(filepath.Join(dir, "items.npy"), items),
		writeCodes(filepath.Join(dir, string(members)+".npy"), near),
		writeCodes(filepath.Join(dir, string(fresh)+".npy"), far),
		writeCodes(filepath.Join(dir, string(both)+".npy"), turns))
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

// setList is the value of a flag that takes letters of sets.
type setList []synth.CodeSet

func (l *setList) String() string {
	var letters []string
	for _, s := range *l {
		letters = append(letters, s.String())
	}
	return strings.Join(letters, ",")
}

func (l *setList) Type() string { return "LETTER,..." }

func (l *setList) Set(s string) error {
	*l = nil
	for _, letter := range strings.Split(s, ",") {
		i := slices.IndexFunc(synth.CodeSets(), func(s synth.CodeSet) bool { return s.String() == letter })
		if i < 0 {
			return fmt.Errorf("unknown set %q: there are U, C, L and S", letter)
		}
		*l = append(*l, synth.CodeSets()[i])
	}
	return nil
}

// A kind is a kind of queries, as the value of a flag.
type kind string

const (
	members kind = "members" // items with some bits flipped
	fresh   kind = "fresh"
	both    kind = "both" // half of each, in turn
)

func (k *kind) String() string { return string(*k) }
func (k *kind) Type() string   { return "KIND" }

func (k *kind) Set(s string) error {
	if *k = kind(s); !slices.Contains([]kind{members, fresh, both}, *k) {
		return fmt.Errorf("there is no kind %q: there are members, fresh and both", s)
	}
	return nil
}
