package vectors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// A config says what is compared.
type config struct {
	sizes   common.Ints
	set     synth.EmbeddingSet
	dims    int
	queries int
	k       int
	asked   string
	recalls []float64 // that fddhdb is asked for; 1 is the last
	rounds  int
	dir     string // for the databases; empty: none stays
	inGo    string
	peers   []string
	most    int    // items that peers in Go get
	usearch string // folder with the source; empty: not compared
}

// Command returns the experiment.
func Command() *cobra.Command {
	c := config{sizes: common.Ints{20_000, 100_000}, dims: 384, queries: 200, k: 10, rounds: 5, most: 20_000}
	cmd := common.New("vectors",
		"Compare nearest neighbours of vectors with USearch, coder/hnsw and chromem-go",
		"Each side runs in a process of its own; fddhdb searches by an index of vectors.",
		cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
			return c.measure(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		})
	f := common.FlagsOf(cmd)
	f.Items(&c.sizes)
	f.Count(&c.dims, "dims", "dimensions of a vector")
	f.Queries(&c.queries)
	f.StringVar((*string)(&c.set), "set", string(synth.Topics), "topics, mixture or tails")
	f.K(&c.k)
	f.StringVar(&c.asked, "recalls", ".9,.95,.98,.99",
		"recalls that fddhdb is asked for, above 0 and below 1; an exact search comes besides")
	f.Rounds(&c.rounds)
	f.Dir(&c.dir)
	f.StringVar(&c.inGo, "peers", "hnsw,chromem", "peers in Go, of hnsw and chromem; may be empty")
	f.IntVar(&c.most, "most", c.most, "items up to which the peers in Go take part, which are slow")
	f.StringVar(&c.usearch, "usearch", "", "folder with the source of USearch, to compare with it")
	cmd.AddCommand(&cobra.Command{Use: serveVerb, Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return serve(cmd.Context(), args, os.Stdin, cmd.OutOrStdout())
		}})
	return cmd
}

// measure prints the tables of each number of items.
func (c *config) measure(ctx context.Context, stdout, stderr io.Writer) error {
	for _, word := range strings.Split(c.asked, ",") {
		r, err := strconv.ParseFloat(word, 64)
		if err != nil || !(r > 0 && r < 1) {
			return fmt.Errorf("--recalls %q: numbers above 0 and below 1 with commas between them are expected", c.asked)
		}
		c.recalls = append(c.recalls, r)
	}
	c.recalls = append(c.recalls, 1)
	if c.inGo != "" {
		c.peers = strings.Split(c.inGo, ",")
	}
	for _, p := range c.peers {
		if p != hnswName && p != chromemName {
			return fmt.Errorf("--peers: %q is not known; %s and %s are", p, hnswName, chromemName)
		}
	}
	source, err := synth.NewEmbeddingSource(c.set, c.dims, 1)
	if err != nil {
		return err
	}
	for _, n := range c.sizes {
		if err := c.compare(ctx, source, n, stdout, stderr); err != nil {
			return fmt.Errorf("%d items: %w", n, err)
		}
	}
	return nil
}

// compare measures all sides on n items, and prints the tables.
func (c *config) compare(ctx context.Context, source *synth.EmbeddingSource, n int, stdout,
	stderr io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "vectors")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	data := generate(ctx, source, n, c.queries, c.dims, c.k)
	if err := data.write(dir); err != nil {
		return err
	}
	sides, err := c.sides(ctx, dir, n)
	if err != nil {
		return err
	}
	for _, s := range sides {
		s.stderr = stderr
		defer s.stop()
		if err := s.start(ctx); err != nil {
			return err
		}
	}
	for round := range c.rounds + 1 { // the first one warms the caches
		for _, s := range sides {
			if err := s.round(data, round > 0); err != nil {
				return err
			}
		}
	}
	for _, s := range sides {
		if err := s.stop(); err != nil {
			return fmt.Errorf("%s: %w", s.program, err)
		}
		for _, p := range s.points {
			slices.Sort(p.micros)
		}
	}
	exact := sides[0].points[len(c.recalls)-1]
	if exact.found < 1 {
		return fmt.Errorf("an exact search by fddhdb finds %v of the nearest items", exact.found)
	}
	fmt.Fprintf(stdout, "%s: %d vectors of %d dimensions, %d queries, k = %d, %d cores\n\n", c.set, n, c.dims,
		c.queries, c.k, runtime.GOMAXPROCS(0))
	printSides(stdout, sides)
	fmt.Fprintln(stdout)
	printRatios(stdout, sides)
	if len(c.peers) > 0 && n > c.most {
		fmt.Fprintf(stdout, "\nNot with so many items (--most): %s\n", strings.Join(c.peers, ", "))
	}
	fmt.Fprintln(stdout)
	return nil
}

// sides returns fddhdb, which is the first, and the peers that take part with n items,
// which are in the folder.
func (c *config) sides(ctx context.Context, folder string, n int) ([]*side, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	inGo := func(program, setting string, values []float64, name, argument string) *side {
		return newSide(program, setting, values, self, "vectors", serveVerb, name, folder,
			strconv.Itoa(c.dims), strconv.Itoa(c.k), argument)
	}
	database := filepath.Join(folder, "db")
	if c.dir != "" {
		database = filepath.Join(c.dir, fmt.Sprintf("%s-%d", c.set, n))
	}
	sides := []*side{inGo("fddhdb", "asked", c.recalls, ourName, database)}
	if n <= c.most && slices.Contains(c.peers, hnswName) {
		for _, m := range []int{16, 32, 64} {
			sides = append(sides, inGo("coder/hnsw", fmt.Sprintf("M %d, ef", m),
				[]float64{20, 100, 400, 1600}, hnswName, strconv.Itoa(m)))
		}
	}
	if n <= c.most && slices.Contains(c.peers, chromemName) {
		sides = append(sides, inGo("chromem-go", "exact", []float64{1}, chromemName, ""))
	}
	if c.usearch != "" {
		program, err := compile(ctx, folder, c.usearch)
		if err != nil {
			return nil, err
		}
		for _, kind := range []string{"f32", "i8"} {
			sides = append(sides, newSide("USearch "+kind, "ef",
				[]float64{10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024},
				program, folder, strconv.Itoa(c.dims), strconv.Itoa(c.k), kind))
		}
	}
	return sides, nil
}

// printSides writes a row for each point of each side.
func printSides(w io.Writer, sides []*side) {
	common.Head(w, 2, "program", "setting", "found", "median, us", "p99, us", "import, s", "build, s",
		"threads", "memory, MB", "disk, MB")
	for _, s := range sides {
		name := s.program
		if s.built.Version != "" {
			name += ", " + s.built.Version
		}
		for i, p := range s.points {
			cells := []string{name, s.setting + " " + strconv.FormatFloat(p.value, 'g', -1, 64),
				fmt.Sprintf("%.4f", p.found),
				digits(p.median()), digits(p.micros[len(p.micros)*99/100]), "", "", "", "", ""}
			if i == 0 { // what is the same for all points
				b := s.built
				cells = append(cells[:5], known(b.Import), known(b.Build), strconv.Itoa(b.Threads),
					known(float64(b.Memory)/1e6), known(float64(b.Disk)/1e6))
			}
			common.Row(w, cells...)
		}
	}
}

// printRatios writes the time of the first side as a part of that of the others, at equal
// recall.
func printRatios(w io.Writer, sides []*side) {
	var peers []string
	head, points := []string{"asked", "found", "fddhdb, us"}, map[string][]*point{}
	for _, s := range sides[1:] {
		if points[s.program] == nil {
			peers, head = append(peers, s.program), append(head, "of "+s.program)
		}
		points[s.program] = append(points[s.program], s.points...)
	}
	common.Head(w, 0, head...)
	for _, p := range sides[0].points {
		cells := []string{strconv.FormatFloat(p.value, 'g', -1, 64), fmt.Sprintf("%.4f", p.found),
			digits(p.median())}
		for _, peer := range peers {
			cell := "-"
			if theirs, ok := microsAt(points[peer], p.found); ok {
				cell = ratio(p.median() / theirs)
			}
			cells = append(cells, cell)
		}
		common.Row(w, cells...)
	}
}

// microsAt returns how long the one that has these points takes to find so much: on the
// straight line between two neighbours among the points that no other point beats in
// both. It is false where no point finds so much.
func microsAt(points []*point, found float64) (float64, bool) {
	points = slices.SortedFunc(slices.Values(points),
		func(a, b *point) int { return cmp.Compare(a.median(), b.median()) })
	var last *point
	for _, p := range points {
		if last != nil && p.found <= last.found {
			continue
		}
		if p.found >= found {
			if last == nil { // even its fastest point finds more
				return p.median(), true
			}
			part := (found - last.found) / (p.found - last.found)
			return last.median() + part*(p.median()-last.median()), true
		}
		last = p
	}
	return 0, false
}

// known formats a number that is 0 where a side has none.
func known(x float64) string {
	if x == 0 {
		return "-"
	}
	return digits(x)
}

// ratio formats a number with two places, and a small one with more.
func ratio(x float64) string {
	if x < .1 {
		return strconv.FormatFloat(x, 'f', 4, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// digits formats a number with about three digits.
func digits(x float64) string {
	switch {
	case x < 10:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case x < 100:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}
