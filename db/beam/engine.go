package beam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/fddhdb/fddhdb/model/sum"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
)

// mostTasks is the number of tasks of a pass up to which a task is one leaf of the tree of sums
// (sum.LeafItems); with more items it is a node of the least level that gives no more tasks.
const mostTasks = 4096

// An engine does the passes of a training by pipelines: it is a sum.Engine.
type engine struct {
	run        *Run
	items      *items
	modalities []int  // by modality of the training: its place in the schema
	labelled   bool   // items are those with labels
	dir        string // of the sums
	labels     string // path of the names of labels, by id
}

// newEngine returns the engine of a training. dir is where its sums lie.
func (r *Run) newEngine(ctx context.Context, it *items, modalities []int, labelled bool) (*engine, error) {
	e := &engine{run: r, items: it, modalities: modalities, labelled: labelled}
	b, err := json.Marshal(it.survey.labels)
	if err != nil {
		return nil, err
	}
	e.dir = join(it.survey.dir, it.of+"-"+hash(fmt.Append(nil, modalities))[:8])
	if remote(e.dir) { // List does not look into folders
		e.dir = it.survey.dir + "-" + it.of + "-" + hash(fmt.Append(nil, modalities))[:8]
	}
	e.labels = join(e.dir, "labels.json")
	return e, write(ctx, e.labels, b)
}

// Survey implements sum.Engine.
func (e *engine) Survey(context.Context) (*sum.Survey, error) {
	return &sum.Survey{
		Items: e.items.n(), Labelled: e.labelled && e.items.n() > 0,
		Has: func(t int) iter.Seq[int] { return e.items.has(e.modalities[t]) },
	}, nil
}

// Sum implements sum.Engine.
func (e *engine) Sum(ctx context.Context, p *sum.Pass) ([]byte, error) {
	b, err := p.MarshalBinary()
	if err != nil {
		return nil, err
	}
	id := hash(b)[:16]
	root := join(e.dir, "sum-"+id)
	pass := join(e.dir, "pass-"+id)
	if !exists(ctx, root) {
		if err := write(ctx, pass, b); err != nil {
			return nil, err
		}
		if err := e.sum(ctx, p.Stage(), id, pass, root); err != nil {
			return nil, err
		}
	}
	return read(ctx, root)
}

// sum runs the pipeline of a pass: tasks make nodes of the tree, and their names are grouped by the parent
// node, level by level, up to the root.
func (e *engine) sum(ctx context.Context, stage, id, pass, root string) error {
	size, n := sum.LeafItems, e.items.n()
	for (n+size-1)/size > mostTasks {
		size *= sum.FanOut
	}
	tasks, encoded, err := e.items.tasks(size)
	if err != nil {
		return err
	}
	if len(tasks) == 0 { // no items: the sum of nothing
		return errors.New("no items to sum up over")
	}
	nodes := make([]string, len(tasks))
	for i := range nodes {
		nodes[i] = nodePath(e.dir, id, 0, i)
	}
	build := func(s sdk.Scope) {
		parts := &SumFn{Plan: e.items.survey.path, Labels: e.labels, Pass: pass, Dir: e.dir, ID: id}
		for _, t := range e.modalities {
			parts.Modalities = append(parts.Modalities, e.items.survey.plan.Schema.Modalities[t].Name)
		}
		done := sdk.ParDo(s, parts, each(s, encoded))
		level := 0
		for count := len(tasks); count > 1 || level == 0; count = (count + sum.FanOut - 1) / sum.FanOut {
			level++
			done = sdk.ParDo(s, &MergeFn{Pass: pass, Dir: e.dir, ID: id, Level: level, Children: count,
				Root: root}, sdk.GroupByKey(s, done))
		}
		drain(s, sdk.ParDo(s, nameFn, done))
	}
	// The nodes of the tasks show the progress; the result needs only the root.
	stop := e.run.watch(ctx, stage, nodes)
	quiet := *e.run
	quiet.Progress = nil
	err = quiet.pipeline(ctx, stage, e.dir, []string{root}, build)
	e.run.counters = quiet.counters
	stop() // before the nodes are removed
	if err != nil {
		return err
	}
	for _, path := range nodes {
		if err := remove(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// nameFn names a node, for drain.
func nameFn(parent, index int) string { return fmt.Sprint(parent, index) }

func init() { register.Function2x1(nameFn) }

// nodePath returns the path of a node of the tree of sums. Level 0 has the tasks.
func nodePath(dir, id string, level, index int) string {
	return join(dir, fmt.Sprintf("node-%s-%d-%06d", id, level, index))
}

// passes are the passes of this process, by the path of their file. Each holds a model.
var passes struct {
	sync.Mutex
	last string
	pass *sum.Pass
}

// passOf returns the pass in a file. It keeps the last one.
func passOf(ctx context.Context, path string) (*sum.Pass, error) {
	passes.Lock()
	defer passes.Unlock()
	if passes.last == path {
		return passes.pass, nil
	}
	b, err := read(ctx, path)
	if err != nil {
		return nil, err
	}
	p, err := sum.UnmarshalPass(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	passes.last, passes.pass = path, p
	return p, nil
}

// SumFn sums up over the items of tasks. It emits the node above the task, and the index of the task.
type SumFn struct {
	Plan, Labels, Pass string   // paths
	Modalities         []string // of the training
	Dir, ID            string   // of nodes
	items              sdk.Counter
	ids                map[string]uint32 // of labels
}

func init() { register.DoFn3x1[context.Context, []byte, func(int, int), error](&SumFn{}) }

// Setup implements a DoFn.
func (f *SumFn) Setup() { f.items = sdk.NewCounter(namespace, "items summed up") }

// ProcessElement makes the node of a task.
func (f *SumFn) ProcessElement(ctx context.Context, b []byte, emit func(int, int)) error {
	done, err := working(ctx, f.Dir)
	if err != nil {
		return err
	}
	defer done()
	var t task
	if err := json.Unmarshal(b, &t); err != nil {
		return err
	}
	path := nodePath(f.Dir, f.ID, 0, t.Index)
	if !exists(ctx, path) {
		sum, err := f.sum(ctx, &t)
		if err != nil {
			return err
		}
		if err := write(ctx, path, sum); err != nil {
			return err
		}
	}
	emit(t.Index/sum.FanOut, t.Index)
	return nil
}

func (f *SumFn) sum(ctx context.Context, t *task) ([]byte, error) {
	w, err := workerOf(ctx, f.Plan)
	if err != nil {
		return nil, err
	}
	p, err := passOf(ctx, f.Pass)
	if err != nil {
		return nil, err
	}
	if f.ids == nil {
		var names []string
		b, err := read(ctx, f.Labels)
		if err == nil {
			err = json.Unmarshal(b, &names)
		}
		if err != nil {
			return nil, err
		}
		f.ids = map[string]uint32{}
		for id, name := range names {
			f.ids[name] = uint32(id)
		}
	}
	var n int64
	sum, err := p.Sum(ctx, t.First, func(yield func(model.Example, error) bool) {
		ex := model.Example{Vectors: make([]model.Vector, len(f.Modalities))}
		err := w.each(ctx, t, func(group, row int, item *db.Item) error {
			n++
			for i, name := range f.Modalities {
				ex.Vectors[i] = vectorOf(item, name)
			}
			ex.Labels = ex.Labels[:0]
			for _, l := range item.Labels {
				id, known := f.ids[l]
				if !known {
					return badInput("%s: row %d: the label %q was not there before: the file has changed",
						w.plan.Groups[group].name(), row, l)
				}
				ex.Labels = append(ex.Labels, id)
			}
			slices.Sort(ex.Labels)
			ex.Labels = slices.Compact(ex.Labels)
			if !yield(ex, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(model.Example{}, err)
		}
	})
	f.items.Inc(ctx, n)
	return sum, err
}

// MergeFn makes a node of the tree of sums of its children.
type MergeFn struct {
	Pass     string // path
	Dir, ID  string // of nodes
	Level    int    // of the node
	Children int    // nodes of the level below
	Root     string // path of the root node
}

func init() {
	register.DoFn4x1[context.Context, int, func(*int) bool, func(int, int), error](&MergeFn{})
	register.Emitter2[int, int]()
	register.Emitter1[string]()
	register.Iter1[int]()
}

// ProcessElement makes a node.
func (f *MergeFn) ProcessElement(ctx context.Context, index int, children func(*int) bool,
	emit func(int, int)) error {
	done, err := working(ctx, f.Dir)
	if err != nil {
		return err
	}
	defer done()
	path := nodePath(f.Dir, f.ID, f.Level, index)
	if f.Children <= sum.FanOut {
		path = f.Root
	}
	// All children must exist: a sum of some would be wrong.
	var of []int
	for c := 0; children(&c); {
		of = append(of, c)
	}
	slices.Sort(of)
	of = slices.Compact(of)
	if want := min(sum.FanOut, f.Children-index*sum.FanOut); len(of) != want {
		return fmt.Errorf("node %d of level %d has %d children, not %d", index, f.Level, len(of), want)
	}
	if !exists(ctx, path) {
		p, err := passOf(ctx, f.Pass)
		if err != nil {
			return err
		}
		sum, err := p.Merge(func(yield func([]byte, error) bool) {
			for _, c := range of {
				b, err := read(ctx, nodePath(f.Dir, f.ID, f.Level-1, c))
				if !yield(b, err) || err != nil {
					return
				}
			}
		})
		if err != nil {
			return err
		}
		if err := write(ctx, path, sum); err != nil {
			return err
		}
	}
	emit(index/sum.FanOut, index)
	return nil
}
