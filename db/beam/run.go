package beam

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/metrics"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
)

// Run says how pipelines run. Beam's flags choose the runner: --runner, --endpoint, --environment_type and so
// on; the default is Prism, in this process. The program calls beam.Init of Beam before, once it has parsed
// them.
type Run struct {
	// Temp is the folder of intermediate files, which must be given. All workers read and write it. The next
	// run with the same input uses the files of a killed run; a run that succeeds removes its own.
	Temp string

	// Tries is the number of times in all that a pipeline is run if it fails for another reason than its
	// input; 0 means 4. The finished files are kept.
	Tries int

	// Silence is the time after which a pipeline is ended and run again, if no worker has given a sign of
	// life; 0 means ten minutes. It has to be longer than a runner takes to start workers.
	Silence time.Duration

	// Progress, unless nil, is called with the stages of a run, in tasks: survey, scan, moments, embedding,
	// statistics, encode, split, load. It is called from one goroutine at a time.
	Progress event.Progress

	// Noted, unless nil, is called with doubts about the guessed columns of Input.Items.
	Noted func(text string)

	// Failed, unless nil, is called with the error of a failed pipeline that is run again.
	Failed func(err error)

	counters map[string]int64
}

// Counters returns Beam's counters of the pipelines so far, by name, if the runner has them.
func (r *Run) Counters() map[string]int64 { return maps.Clone(r.counters) }

// namespace is the namespace of the counters.
const namespace = "fddhdb"

// begin checks the options.
func (r *Run) begin() (err error) {
	switch {
	case r.Temp == "":
		return fault.Invalid("--temp: no temporary folder is given")
	case r.Tries < 0:
		return fault.Invalid("--tries %d: 1 or more are possible", r.Tries)
	case r.Silence != 0 && r.Silence < 2*beatEvery:
		return fault.Invalid("--silence %v: %v or more is possible", r.Silence, 2*beatEvery)
	case !sdk.Initialized():
		return errors.New("beam.Init of Apache Beam has to be called before")
	}
	r.Temp, err = absolute(r.Temp)
	return err
}

// pipeline runs a pipeline that makes files of tasks: results are their paths, by task. It does not run if
// all of them exist, and runs again after a failure. Workers give signs of life in dir.
func (r *Run) pipeline(ctx context.Context, stage, dir string, results []string,
	build func(s sdk.Scope)) error {
	if there(ctx, results) == len(results) {
		return nil
	}
	stop := r.watch(ctx, stage, results)
	defer stop()
	tries := r.Tries
	if tries == 0 {
		tries = 4
	}
	for try := 1; ; try++ {
		p, s := sdk.NewPipelineWithRoot()
		build(s)
		watched, ended := watchdog(ctx, dir, results, cmp.Or(r.Silence, 10*time.Minute))
		result, err := beamx.RunWithMetrics(watched, p)
		var silent errSilent
		if errors.As(context.Cause(watched), &silent) {
			err = silent
		}
		ended()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if result != nil && err == nil {
			r.count(result.Metrics())
		}
		if err == nil {
			if n := there(ctx, results); n < len(results) {
				return fmt.Errorf("%s: the pipeline has ended, and %d of %d results are there: is the temporary folder %s the same for all workers?", stage, n, len(results), r.Temp)
			}
			return nil
		}
		err = short(err)
		if _, what, ok := strings.Cut(err.Error(), badInputMark); ok {
			return inputError("%s", what)
		}
		err = fmt.Errorf("%s: %w", stage, err)
		if try == tries {
			return err
		}
		if r.Failed != nil {
			r.Failed(err)
		}
	}
}

// badInputMark begins an error of a task about its input. Errors of tasks come back as text.
const badInputMark = "bad input: "

// badInput returns an error about the input, for which a pipeline is not tried again.
func badInput(format string, args ...any) error {
	return inputError(badInputMark+format, args...)
}

// short extracts the text of a task from an error of a runner: it stands at the end, behind a description of
// the pipeline.
func short(err error) error {
	text := err.Error()
	if i := strings.LastIndex(text, "] failed:\n"); i >= 0 {
		return &worded{text[i+len("] failed:\n"):], err}
	}
	return err
}

// count adds up counters.
func (r *Run) count(m metrics.Results) {
	if r.counters == nil {
		r.counters = map[string]int64{}
	}
	for _, c := range m.AllMetrics().Counters() {
		if c.Key.Namespace == namespace {
			r.counters[c.Key.Name] += c.Result()
		}
	}
}

// watch reports the number of existing results, now and then, and when stop is called.
func (r *Run) watch(ctx context.Context, stage string, results []string) (stop func()) {
	if r.Progress == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	r.Progress(stage, int64(there(ctx, results)), int64(len(results)))
	go func() {
		defer close(ended)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				r.Progress(stage, int64(there(ctx, results)), int64(len(results)))
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		done := int64(there(ctx, results))
		cancel()
		<-ended
		r.Progress(stage, done, int64(len(results)))
	}
}

// there returns how many of the files exist.
func there(ctx context.Context, files []string) (n int) {
	if len(files) == 0 {
		return 0
	}
	if !remote(files[0]) {
		for _, f := range files {
			if exists(ctx, f) {
				n++
			}
		}
		return n
	}
	dir := files[0][:len(files[0])-len(base(files[0]))]
	found, err := list(ctx, dir+"*")
	if err != nil {
		return 0
	}
	for _, f := range files {
		if _, ok := slices.BinarySearch(found, f); ok {
			n++
		}
	}
	return n
}

// base returns the last part of a path.
func base(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' || path[i] == '\\' {
			return path[i+1:]
		}
	}
	return path
}

// each returns the tasks, as a collection whose elements any worker may take.
func each(s sdk.Scope, tasks [][]byte) sdk.PCollection {
	return sdk.Reshuffle(s, sdk.CreateList(s, tasks))
}

// drain ends a pipeline that has no use for its elements. Without it Prism 2.77 spins: for a bundle without
// output it waits in a loop for data that it knows to be complete, and takes a processor from the workers. A
// bundle of DiscardFn ends at once.
func drain(s sdk.Scope, elements sdk.PCollection) {
	sdk.ParDo0(s, &DiscardFn{}, sdk.Reshuffle(s, elements))
}

// DiscardFn takes elements and does nothing.
type DiscardFn struct{}

func init() { register.DoFn1x0[string](&DiscardFn{}) }

// ProcessElement does nothing.
func (*DiscardFn) ProcessElement(string) {}
