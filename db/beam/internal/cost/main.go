// Cost estimates what a build takes: learning a model, and a database of each shard, with package beam. It is
// a model of costs from measured rates; docs/SCALE.md has what it rests on.
//
//	go run ./internal/cost -items 1e9 -workers 100
//	go run ./internal/cost -items 1e6 -workers 1 -cores 2 -dims 128,128 -labels 20
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
)

func main() {
	if err := command(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(2)
	}
}

// A job is what is to be built, and with what.
type job struct {
	items          float64
	dims           []float64 // by modality
	labels, bits   float64
	anchors        float64
	workers, cores float64
	files, shards  float64 // groups of files, and databases
	disk           float64 // bytes a second of the temporary folder and of the output, a worker
	moments        bool    // a pass for the moments of features: not if all are raw
}

// rates are measured, a core: docs/BENCHMARKS.md, "Pipelines", says where and how.
type rates struct {
	survey     float64 // seconds an item, besides its bytes
	check      float64 // bytes a second of vectors that the survey reads and checks
	read       float64 // bytes a second of vectors that a pass reads
	moments    float64 // numbers a second
	statistics float64 // multiplications a second, of features and their sums
	encode     float64 // multiplications a second
	split      float64 // bytes a second
	load       float64 // seconds an item, besides its bytes
	loadBytes  float64 // bytes a second
	draw       float64 // seconds an item and modality, in the driver
	choose     float64 // seconds that choosing and solving take, in the driver, however many items there are
}

// A stage is a part of a job.
type stage struct {
	name   string
	core   float64 // core seconds of workers
	bytes  float64 // that workers read or write
	driver float64 // seconds of the driver
	tasks  float64 // at most so many workers have something to do
}

// Shape of the work; see sum.LeafItems and package beam.
const (
	leaf      = 65536
	fan       = 16
	mostTasks = 4096
)

// stages returns the stages of a job.
func (j *job) stages(r *rates) []stage {
	n := j.items
	numbers := 0.0
	for _, d := range j.dims {
		numbers += d
	}
	vectors := 4 * numbers // bytes an item
	leaves := math.Ceil(n / leaf)
	tasks, size := leaves, 1.0
	for tasks > mostTasks {
		size *= fan
		tasks = math.Ceil(leaves / size)
	}
	statistics, multiplications, encodings, sum := 0.0, 0.0, 0.0, 0.0
	for _, d := range j.dims {
		k := j.anchors
		multiplications += k * (d + k/2 + j.labels)
		encodings += k * (d + j.bits)
		sum += 4*k*(k+1) + 8*k*j.labels + 4*j.labels*(j.labels+1)
	}
	statistics = n * multiplications
	pass := n * vectors / r.read
	stages := []stage{
		{"survey", n*r.survey + n*vectors/r.check, n * vectors, 0, j.files},
		{"scan", pass + n*numbers/r.moments, n * vectors, n * r.draw * float64(len(j.dims)), tasks},
	}
	if j.moments {
		stages = append(stages, stage{"moments", pass + n*numbers/r.moments, n * vectors, 0, tasks})
	}
	return append(stages,
		stage{"choose, solve", 0, 0, r.choose, 1},
		stage{"statistics", pass + statistics/r.statistics, n*vectors + 2*tasks*sum, 0, tasks},
		stage{"split", pass + n*vectors/r.split, 2 * n * vectors, 0, leaves},
		stage{"load", n*r.load + n*vectors/r.loadBytes + n*encodings/r.encode, 4 * n * vectors, 0, j.shards},
	)
}

// seconds returns how long a stage takes.
func (j *job) seconds(s stage) float64 {
	workers := math.Min(j.workers, math.Max(1, s.tasks))
	return s.driver + math.Max(s.core/(workers*j.cores), s.bytes/(workers*j.disk))
}

func command(args []string, out io.Writer) error {
	j := job{dims: []float64{512, 384}}
	r := measured
	f := flag.NewFlagSet("cost", flag.ContinueOnError)
	number := func(p *float64, name string, value float64, usage string) {
		*p = value
		f.Func(name, fmt.Sprintf("%s (default %g)", usage, value), func(s string) (err error) {
			*p, err = strconv.ParseFloat(s, 64)
			if err == nil && !(*p > 0) {
				err = errors.New("a number above 0 is expected")
			}
			return err
		})
	}
	number(&j.items, "items", 1e9, "items, all of which are labelled")
	number(&j.labels, "labels", 24, "labels")
	number(&j.bits, "bits", 64, "bits of a code")
	number(&j.anchors, "anchors", 800, "features of a map")
	number(&j.files, "files", 1000, "groups of files")
	number(&j.shards, "shards", 100, "databases")
	number(&j.workers, "workers", 100, "worker machines")
	number(&j.cores, "cores", 4, "cores of each")
	number(&j.disk, "disk", 200e6, "bytes a second that each reads or writes")
	f.BoolVar(&j.moments, "moments", true, "features are not raw, which takes a pass more")
	f.Func("dims", "dimensions of the modalities (default 512,384)", func(s string) error {
		j.dims = nil
		for _, d := range strings.Split(s, ",") {
			x, err := strconv.ParseFloat(d, 64)
			if err != nil || !(x > 0) {
				return errors.New("numbers above 0 with commas between them are expected")
			}
			j.dims = append(j.dims, x)
		}
		return nil
	})
	f.SetOutput(out)
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q is not expected", f.Arg(0))
	}
	if j.items > math.MaxInt32 {
		return fmt.Errorf("-items %g: a training takes at most %d items", j.items, math.MaxInt32)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "stage\tcore hours\tGB moved\tworkers busy\tminutes\tbound by\t\n")
	var core, bytes, seconds float64
	for _, s := range j.stages(&r) {
		busy := math.Min(j.workers, math.Max(1, s.tasks))
		by := "cores"
		switch t := s.bytes / (busy * j.disk); {
		case s.driver > t && s.driver > s.core/(busy*j.cores):
			by = "driver"
		case t > s.core/(busy*j.cores):
			by = "disk"
		}
		fmt.Fprintf(w, "%s\t%.4g\t%.4g\t%.0f\t%.3g\t%s\t\n", s.name, s.core/3600, s.bytes/1e9, busy,
			j.seconds(s)/60, by)
		core, bytes, seconds = core+s.core, bytes+s.bytes, seconds+j.seconds(s)
	}
	fmt.Fprintf(w, "all\t%.4g\t%.4g\t\t%.3g\t\t\n", core/3600, bytes/1e9, seconds/60)
	return w.Flush()
}
