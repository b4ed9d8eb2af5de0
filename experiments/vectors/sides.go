package vectors

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/coder/hnsw"
	"github.com/philippgille/chromem-go"

	"github.com/fddhdb/fddhdb/db"
)

// A side is a process that has built its index, and searches when it is told to.
type side struct {
	program string
	setting string // name of what points differ in
	points  []*point
	argv    []string
	stderr  io.Writer

	built built
	cmd   *exec.Cmd // nil: not started
	in    io.WriteCloser
	out   io.ReadCloser
	says  *json.Decoder // reads out
}

// A point is what a side reaches with one value of its setting.
type point struct {
	value  float64
	found  float64   // share of the nearest items
	micros []float64 // of all timed searches, ascending once all rounds are over
}

// median returns the median of the times, of which there is at least one.
func (p *point) median() float64 { return p.micros[len(p.micros)/2] }

// built is what a process says when it can search.
type built struct {
	Version string  // of a library that go.mod does not name
	Threads int     // that have built
	Import  float64 // seconds
	Build   float64 // seconds
	Memory  int64   // bytes
	Disk    int64   // bytes
}

// A pass is the answer of a process to a value of its setting: how long each query took,
// and the items that it found.
type pass struct {
	Nanos []int64
	Found [][]int
}

func newSide(program, setting string, values []float64, argv ...string) *side {
	s := &side{program: program, setting: setting, argv: argv}
	for _, v := range values {
		s.points = append(s.points, &point{value: v})
	}
	return s
}

// start returns when the process has built its index.
func (s *side) start(ctx context.Context) (err error) {
	cmd := exec.CommandContext(ctx, s.argv[0], s.argv[1:]...)
	cmd.Stderr = s.stderr
	if s.in, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if s.out, err = cmd.StdoutPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd, s.says = cmd, json.NewDecoder(s.out)
	return s.answer(&s.built)
}

// answer reads what the process says next.
func (s *side) answer(v any) error {
	err := s.says.Decode(v)
	if err == nil {
		return nil
	}
	if ended := s.stop(); ended != nil && errors.Is(err, io.EOF) {
		err = ended
	}
	return fmt.Errorf("%s: %w", s.program, err)
}

// stop ends the process: by the end of its input, or where it still writes by that of its
// output.
func (s *side) stop() error {
	if s.cmd == nil {
		return nil
	}
	cmd := s.cmd
	s.cmd = nil
	s.in.Close()
	s.out.Close()
	return cmd.Wait()
}

// round searches with all queries by each value.
func (s *side) round(data *set, timed bool) error {
	for _, p := range s.points {
		if _, err := fmt.Fprintln(s.in, p.value); err != nil {
			return fmt.Errorf("%s: %w", s.program, err)
		}
		var got pass
		if err := s.answer(&got); err != nil {
			return err
		}
		queries := len(data.nearest)
		if len(got.Nanos) != queries || len(got.Found) != queries {
			return fmt.Errorf("%s: %d answers and %d times to %d queries", s.program, len(got.Found),
				len(got.Nanos), queries)
		}
		found := 0.0
		for q, answer := range got.Found {
			r, err := data.recall(q, answer)
			if err != nil {
				return fmt.Errorf("%s: %w", s.program, err)
			}
			found += r
			if timed {
				p.micros = append(p.micros, float64(got.Nanos[q])/1e3)
			}
		}
		p.found = found / float64(queries)
	}
	return nil
}

// modality is that of the vectors.
const modality = "e"

// A database is fddhdb with an index of vectors.
type database struct {
	db     *db.DB
	main   *db.Collection
	recall float64
	answer *db.Result
}

// newDatabase imports and indexes the items of a file, with their numbers as keys, into a
// new database, as a user of package db does. It returns when the vectors are in memory.
func newDatabase(ctx context.Context, items string, dims int, folder string) (_ engine, _ *built, err error) {
	d, err := db.Open(folder, nil)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	c, err := d.CreateCollection(ctx, "main",
		db.Schema{Modalities: []db.Modality{{Name: modality, Dim: dims}}})
	if err != nil {
		return nil, nil, err
	}
	start := time.Now()
	first, err := load(ctx, d, c, items, dims)
	if err != nil {
		return nil, nil, err
	}
	imported := time.Now()
	if _, err := c.IndexVectors(ctx, db.IndexOptions{}); err != nil {
		return nil, nil, err
	}
	b := &built{Threads: runtime.GOMAXPROCS(0), Import: imported.Sub(start).Seconds(),
		Build: time.Since(imported).Seconds()}
	e := &database{db: d, main: c, recall: 1}
	if err := e.search(ctx, first, 1); err != nil {
		return nil, nil, err
	}
	if err := d.WaitForIndex(ctx); err != nil {
		return nil, nil, err
	}
	stats, err := d.Stats()
	if err != nil {
		return nil, nil, err
	}
	b.Disk = stats.DiskBytes
	return e, b, nil
}

// load imports the items of a file, and returns the first one.
func load(ctx context.Context, d *db.DB, c *db.Collection, items string,
	dims int) (first []float32, err error) {
	b, n := d.NewBatch(), 0
	for row, err := range readRows(items, dims) {
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = row
		}
		if err := b.Put(c, &db.Item{Key: strconv.Itoa(n),
			Vectors: map[string][]float32{modality: row}}); err != nil {
			return nil, err
		}
		if n++; b.Full() {
			if err := b.Commit(ctx); err != nil {
				return nil, err
			}
			b = d.NewBatch()
		}
	}
	return first, b.Commit(ctx)
}

func (d *database) set(recall float64) { d.recall = recall }

func (d *database) search(ctx context.Context, query []float32, k int) (err error) {
	d.answer, err = d.main.Search(ctx, db.Query{From: modality, Vector: query, K: k, Recall: d.recall})
	return err
}

func (d *database) found() ([]int, error) {
	var items []int
	for _, h := range d.answer.Hits {
		i, err := strconv.Atoi(h.Key)
		if err != nil {
			return nil, err
		}
		items = append(items, i)
	}
	return items, nil
}

func (d *database) close() error { return d.db.Close() }

//go:embed usearch/main.cpp
var usearchProgram []byte

// compile makes the program of usearch/main.cpp in a folder, with the headers that are in the
// folder source, and returns its path.
func compile(ctx context.Context, folder, source string) (string, error) {
	with := func(header string) string {
		for _, dir := range []string{"", "include", "numkong/include"} {
			dir = filepath.Join(source, dir)
			if _, err := os.Stat(filepath.Join(dir, header)); err == nil {
				return dir
			}
		}
		return ""
	}
	headers := with("usearch/index_dense.hpp")
	if headers == "" {
		return "", fmt.Errorf("-usearch %s: the folder has neither usearch/index_dense.hpp nor include/usearch/index_dense.hpp", source)
	}
	compiler, err := compilerCommand()
	if err != nil {
		return "", err
	}
	text, program := filepath.Join(folder, "usearch.cpp"), filepath.Join(folder, "usearch.exe")
	if err := os.WriteFile(text, usearchProgram, 0o600); err != nil {
		return "", err
	}
	// Loops that sum become vector instructions only if sums may be in any order.
	args := append(compiler[1:], "-std=c++17", "-O3", "-march=native", "-ffast-math", "-pthread", "-w", "-I",
		headers)
	if kernels := with("numkong/spatial.h"); kernels != "" {
		args = append(args, "-I", kernels, "-DWITH_NUMKONG=1", "-DNK_DYNAMIC_DISPATCH=0", "-DNK_NATIVE_F16=0",
			"-DNK_NATIVE_BF16=0")
	}
	args = append(args, "-o", program, text)
	if said, err := exec.CommandContext(ctx, compiler[0], args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile USearch by %s: %w: %.2000s", compiler[0], err, said)
	}
	return program, nil
}

// compilerCommand returns the C++ compiler, with arguments that $CXX may have.
func compilerCommand() ([]string, error) {
	if words := strings.Fields(os.Getenv("CXX")); len(words) > 0 {
		return words, nil
	}
	for _, name := range []string{"c++", "g++"} {
		if path, err := exec.LookPath(name); err == nil {
			return []string{path}, nil
		}
	}
	return nil, errors.New("-usearch: there is no C++ compiler: neither $CXX, c++ nor g++")
}

// A graph is coder/hnsw. How many nodes it keeps while it searches has no effect on what
// it finds: only how many it is asked for has. So it is asked for ef items, and finds
// those of the nearest that are among them. Choosing the nearest of the ef is not timed.
type graph struct {
	graph  *hnsw.Graph[int]
	answer []hnsw.Node[int]
}

// newGraph adds the items of a file to a graph whose nodes have up to m neighbours. One
// goroutine does, as a graph wants it.
func newGraph(_ context.Context, items string, dims int, m string) (engine, *built, error) {
	g := hnsw.NewGraph[int]()
	g.Rng = rand.New(rand.NewSource(1))
	g.EfSearch = 128 // while it is built, as in USearch
	var err error
	if g.M, err = strconv.Atoi(m); err != nil {
		return nil, nil, err
	}
	var nodes []hnsw.Node[int]
	for row, err := range readRows(items, dims) {
		if err != nil {
			return nil, nil, err
		}
		nodes = append(nodes, hnsw.MakeNode(len(nodes), row))
	}
	start := time.Now()
	g.Add(nodes...)
	return &graph{graph: g}, &built{Threads: 1, Build: time.Since(start).Seconds()}, nil
}

func (g *graph) set(ef float64) { g.graph.EfSearch = int(ef) }

func (g *graph) search(_ context.Context, query []float32, k int) error {
	g.answer = g.graph.Search(query, max(k, g.graph.EfSearch))
	return nil
}

func (g *graph) found() ([]int, error) {
	var items []int
	for _, n := range g.answer {
		items = append(items, n.Key)
	}
	return items, nil
}

func (g *graph) close() error { return nil }

// A scan is chromem-go, which compares all items.
type scan struct {
	documents *chromem.Collection
	answer    []chromem.Result
}

// newChromem adds the items of a file to a collection in memory.
func newChromem(ctx context.Context, items string, dims int, _ string) (engine, *built, error) {
	// It starts as many goroutines as there are processors: this leaves them one thread.
	runtime.GOMAXPROCS(1)
	c, err := chromem.NewDB().CreateCollection("main", nil, nil)
	if err != nil {
		return nil, nil, err
	}
	start := time.Now()
	for row, err := range readRows(items, dims) {
		if err != nil {
			return nil, nil, err
		}
		if err := c.AddDocument(ctx, chromem.Document{ID: strconv.Itoa(c.Count()),
			Embedding: row}); err != nil {
			return nil, nil, err
		}
	}
	return &scan{documents: c}, &built{Threads: 1, Build: time.Since(start).Seconds()}, nil
}

func (s *scan) set(float64) {}

func (s *scan) search(ctx context.Context, query []float32, k int) (err error) {
	s.answer, err = s.documents.QueryEmbedding(ctx, query, min(k, s.documents.Count()), nil, nil)
	return err
}

func (s *scan) found() ([]int, error) {
	var items []int
	for _, r := range s.answer {
		i, err := strconv.Atoi(r.ID)
		if err != nil {
			return nil, err
		}
		items = append(items, i)
	}
	return items, nil
}

func (s *scan) close() error { return nil }
