package vectors

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strconv"
	"time"
)

// serveVerb makes this program the process of a side in Go:
//
//	vectors serve NAME FOLDER DIMS K ARGUMENT
//
// usearch/main.cpp has the same arguments but the first two, and says the same.
const serveVerb = "serve"

// Names of the sides in Go.
const (
	ourName     = "fddhdb"
	hnswName    = "hnsw"
	chromemName = "chromem"
)

// An engine is a library with all items in it.
type engine interface {
	// set sets what the library offers to trade recall for time.
	set(value float64)

	// search is what is timed.
	search(ctx context.Context, query []float32, k int) error

	// found returns the numbers of the items that the last search has found.
	found() ([]int, error)

	close() error
}

// engines make engines of the items of a file, and tell how long that took. The argument
// is from the command line.
var engines = map[string]func(ctx context.Context, items string, dims int, argument string) (engine, *built,
	error){
	ourName:     newDatabase,
	hnswName:    newGraph,
	chromemName: newChromem,
}

// serve builds, says so, and for each line of stdin, a value to set, searches with all
// queries.
func serve(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) (err error) {
	if len(args) != 5 || engines[args[0]] == nil {
		return fmt.Errorf("%s NAME FOLDER DIMS K ARGUMENT is expected", serveVerb)
	}
	folder := args[1]
	dims, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	k, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	var queries [][]float32
	for q, err := range readRows(filepath.Join(folder, queriesFile), dims) {
		if err != nil {
			return err
		}
		queries = append(queries, q)
	}
	e, b, err := engines[args[0]](ctx, filepath.Join(folder, itemsFile), dims, args[4])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	b.Memory = heap()
	out := json.NewEncoder(stdout)
	if err := out.Encode(b); err != nil {
		return err
	}
	for lines := bufio.NewScanner(stdin); lines.Scan(); {
		value, err := strconv.ParseFloat(lines.Text(), 64)
		if err != nil {
			return err
		}
		e.set(value)
		var p pass
		for _, q := range queries {
			start := time.Now()
			if err := e.search(ctx, q, k); err != nil {
				return err
			}
			p.Nanos = append(p.Nanos, time.Since(start).Nanoseconds())
			found, err := e.found()
			if err != nil {
				return err
			}
			p.Found = append(p.Found, found)
		}
		if err := out.Encode(p); err != nil {
			return err
		}
	}
	return nil
}

// heap returns the bytes of the heap that are in use.
func heap() int64 {
	for range 2 { // the first collection may leave what has finalizers
		runtime.GC()
	}
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
