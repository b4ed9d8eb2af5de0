package beam

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/fddhdb/fddhdb/model/fit"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/shard"
)

// BuildOptions name the model, the output folder and the number of shards of Build.
type BuildOptions struct {
	Model  string // path of a file of a model; "" makes databases without a space of codes
	Out    string // a folder, for the repositories
	Shards int    // 1 or more
}

// Built describes the output of Build. It is the file build.json of its folder.
type Built struct {
	Version int `json:"version"` // 1
	// rule for the shard of a key: "xxh64 mod shards", see shard.Of
	Hash       string  `json:"hash"`
	Collection string  `json:"collection"`      // of each database
	Model      string  `json:"model,omitempty"` // SHA-256 of the file of the model
	Items      int     `json:"items"`
	Shards     []Shard `json:"shards"`

	Rejected []Rejected `json:"-"` // bad rows that were left out
}

// builtVersion is the newest version of build.json that this package knows.
const builtVersion = 1

// shardHash is Built.Hash.
const shardHash = "xxh64 mod shards"

// A Shard is a repository of backups with one backup of a database.
type Shard struct {
	Shard      int    `json:"shard"`
	Repository string `json:"repository"` // its folder, within the folder of the build
	Backup     string `json:"backup"`     // id
	Items      int    `json:"items"`
	Replaced   int    `json:"replaced,omitempty"` // items with a repeated key
}

// Build makes a database of each shard of the items, with the schema of the input. If a model is given, the
// database has a space of codes by it, which is active. Build stores the databases in repositories of
// backups, shard-0000 and so on, and writes their list, build.json, last. An item has the same codes as in
// one database of all items with that model. So for any order by distance the k nearest of all shards
// together are the k nearest of one database, but for ties.
//
// A worker loads up to two shards at a time. Each takes the memory of a full db.Batch and of
// db.Collection.ImportModel, and on the worker's disk twice the size of its items. An existing shard is not
// built again if it has the same input, model and options.
//
// Errors: a bad row or file, with its name; a model that does not fit; the last try of a pipeline; ctx.
func Build(ctx context.Context, in *Input, opt BuildOptions, r *Run) (*Built, error) {
	if opt.Shards < 1 || opt.Shards > maxShards {
		return nil, fault.Invalid("--shards %d: 1 to %d are possible", opt.Shards, maxShards)
	}
	s, err := r.survey(ctx, in)
	if err != nil {
		return nil, err
	}
	if opt.Model, err = absolute(opt.Model); err != nil {
		return nil, err
	}
	if opt.Out, err = absolute(opt.Out); err != nil {
		return nil, err
	}
	out := &Built{Version: builtVersion, Hash: shardHash, Collection: s.plan.Collection,
		Rejected: s.rejected()}
	if opt.Model != "" {
		b, err := read(ctx, opt.Model)
		if err != nil {
			return nil, err
		}
		f, err := fit.UnmarshalFile(b)
		if err != nil {
			return nil, inputError("--model %s: it is no model file, or a damaged one: %w", opt.Model, err)
		}
		if err := fits(f, s.plan.Schema); err != nil {
			return nil, err
		}
		out.Model = hash(b)
	}
	id := hash(fmt.Append(nil, s.id, out.Model, opt.Shards))[:16]
	if err := claim(ctx, opt.Out, "BUILD", id); err != nil {
		return nil, err
	}
	for i := range opt.Shards {
		if err := forgetLost(ctx, opt.Out, i); err != nil {
			return nil, err
		}
	}
	it := s.good()
	_, tasks, err := it.tasks(taskItems)
	if err != nil {
		return nil, err
	}
	dir := join(s.dir, "shards-"+id)
	if remote(s.dir) {
		dir = s.dir + "-shards-" + id
	}
	if err := split(ctx, r, s, dir, tasks, opt); err != nil {
		return nil, err
	}
	var results []string
	var numbers [][]byte
	for i := range opt.Shards {
		results = append(results, shardPath(opt.Out, i))
		numbers = append(numbers, fmt.Append(nil, i))
	}
	err = r.pipeline(ctx, "load", dir, results, func(scope sdk.Scope) {
		drain(scope, sdk.ParDo(scope, &LoadFn{Plan: s.path, Dir: dir, Tasks: len(tasks), Model: opt.Model,
			Hash: out.Model, Out: opt.Out}, each(scope, numbers)))
	})
	if err != nil {
		return nil, err
	}
	for _, path := range results {
		var shard Shard
		if err := readJSON(ctx, path, &shard); err != nil {
			return nil, err
		}
		if err := onlyBackup(ctx, join(opt.Out, shard.Repository), shard.Backup); err != nil {
			return nil, err
		}
		out.Shards = append(out.Shards, shard)
		out.Items += shard.Items
	}
	b, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := write(ctx, join(opt.Out, builtName), append(b, '\n')); err != nil {
		return nil, err
	}
	sweep(opt.Out)
	_, _ = removeAll(ctx, dir), removeAll(ctx, s.dir) // the shards exist; the rest only takes space
	return out, nil
}

const (
	builtName = "build.json"
	maxShards = 4096 // a worker has a file of each open, twice
)

func shardPath(out string, shard int) string { return join(out, fmt.Sprintf("shard-%04d.json", shard)) }
func shardName(shard int) string             { return fmt.Sprintf("shard-%04d", shard) }

// splitPath returns the path of the items of a task that belong to a shard.
func splitPath(dir string, task, shard int) string {
	return join(dir, fmt.Sprintf("items-%05d-%04d", task, shard))
}

// splitDone returns the path of the result of a task. Its files have all shards but the built ones.
func splitDone(dir string, task int, built []int) string {
	return join(dir, fmt.Sprintf("split-%s-%05d", hash(fmt.Append(nil, built))[:8], task))
}

// split sorts the items by shard.
func split(ctx context.Context, r *Run, s *survey, dir string, tasks [][]byte, opt BuildOptions) error {
	f := &SplitFn{Plan: s.path, Dir: dir, Shards: opt.Shards}
	for i := range opt.Shards {
		if exists(ctx, shardPath(opt.Out, i)) {
			f.Built = append(f.Built, i)
		}
	}
	if len(f.Built) == opt.Shards {
		return nil
	}
	var results []string
	for i := range tasks {
		results = append(results, splitDone(dir, i, f.Built))
	}
	return r.pipeline(ctx, "split", dir, results, func(scope sdk.Scope) {
		drain(scope, sdk.ParDo(scope, f, each(scope, tasks)))
	})
}

// SplitFn writes the items of tasks to files of their shard.
type SplitFn struct {
	Plan, Dir string
	Shards    int
	Built     []int // finished shards

	items sdk.Counter
}

func init() { register.DoFn3x1[context.Context, []byte, func(string), error](&SplitFn{}) }

// Setup implements a DoFn.
func (f *SplitFn) Setup() { f.items = sdk.NewCounter(namespace, "items split") }

// ProcessElement splits a task.
func (f *SplitFn) ProcessElement(ctx context.Context, b []byte, emit func(string)) error {
	done, err := working(ctx, f.Dir)
	if err != nil {
		return err
	}
	defer done()
	var t task
	if err := json.Unmarshal(b, &t); err != nil {
		return err
	}
	path := splitDone(f.Dir, t.Index, f.Built)
	if exists(ctx, path) {
		return nil
	}
	w, err := workerOf(ctx, f.Plan)
	if err != nil {
		return err
	}
	// The files of all shards are open together. They get their names when all items of the task are written.
	n, err := f.split(ctx, w, &t, make([]*shardWriter, f.Shards), 0)
	if err != nil {
		return err
	}
	f.items.Inc(ctx, int64(n))
	if err := write(ctx, path, nil); err != nil {
		return err
	}
	emit(path)
	return nil
}

// split creates the file of a shard and calls itself for the next shard. Behind the last shard it reads the
// items of the task and writes each to the file of its shard. It returns the number of items written.
func (f *SplitFn) split(ctx context.Context, w *worker, t *task, to []*shardWriter,
	next int) (n int, err error) {
	if next == f.Shards {
		numbers := t.ordinals()
		return n, w.each(ctx, t, func(group, row int, item *db.Item) error {
			key := numbers.key(group, row, item)
			if s := to[shard.Of(key, f.Shards)]; s != nil {
				n++
				return s.put(key, item)
			}
			return nil
		})
	}
	if slices.Contains(f.Built, next) {
		return f.split(ctx, w, t, to, next+1)
	}
	err = create(ctx, splitPath(f.Dir, t.Index, next), func(file io.Writer) error {
		to[next] = newShardWriter(file)
		if n, err = f.split(ctx, w, t, to, next+1); err != nil {
			return err
		}
		return to[next].close()
	})
	return n, err
}

// LoadFn makes the database of shards.
type LoadFn struct {
	Plan, Dir string
	Tasks     int    // number of tasks, each with a file of each shard
	Model     string // path; "" for none
	Hash      string // of the model
	Out       string

	items sdk.Counter
}

func init() { register.DoFn3x1[context.Context, []byte, func(string), error](&LoadFn{}) }

// Setup implements a DoFn.
func (f *LoadFn) Setup() { f.items = sdk.NewCounter(namespace, "items loaded") }

// ProcessElement makes the database of a shard.
func (f *LoadFn) ProcessElement(ctx context.Context, b []byte, emit func(string)) error {
	done, err := working(ctx, f.Dir)
	if err != nil {
		return err
	}
	defer done()
	var number int
	if err := json.Unmarshal(b, &number); err != nil {
		return err
	}
	path := shardPath(f.Out, number)
	if exists(ctx, path) {
		return nil
	}
	dir, err := newLocalDir("db-*")
	if err != nil {
		return err
	}
	shard, err := f.load(ctx, number, filepath.Join(dir, "db"))
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		return fmt.Errorf("shard %d: %s", number, reason(err))
	}
	f.items.Inc(ctx, int64(shard.Items))
	if b, err = json.Marshal(shard); err != nil {
		return err
	}
	if err := write(ctx, path, b); err != nil {
		return err
	}
	emit(path)
	return nil
}

// load makes the database of a shard in a folder, and backs it up.
func (f *LoadFn) load(ctx context.Context, number int, dir string) (shard *Shard, err error) {
	w, err := workerOf(ctx, f.Plan)
	if err != nil {
		return nil, err
	}
	repository := join(f.Out, shardName(number))
	to, err := store(ctx, repository)
	if err != nil {
		return nil, err
	}
	d, err := db.Open(dir, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	c, err := d.CreateCollection(ctx, w.plan.Collection, w.plan.Schema)
	if err != nil {
		return nil, err
	}
	// Import the model first: so its labels have ids in its order, and items get their codes as they are
	// loaded.
	if f.Model != "" {
		b, err := readModel(ctx, f.Model, f.Hash)
		if err != nil {
			return nil, err
		}
		if _, err := c.ImportModel(ctx, bytes.NewReader(b),
			db.ImportModelOptions{Activate: true}); err != nil {
			return nil, err
		}
	}
	n, err := f.fill(ctx, d, c, number)
	if err != nil {
		return nil, err
	}
	stored, err := c.Count(ctx, "")
	if err != nil {
		return nil, err
	}
	m, err := d.Backup(ctx, to, db.BackupOptions{})
	if err != nil {
		return nil, err
	}
	return &Shard{Shard: number, Repository: shardName(number), Backup: m.ID, Items: stored,
		Replaced: n - stored}, nil
}

// fill loads the items of a shard, and returns their number.
func (f *LoadFn) fill(ctx context.Context, d *db.DB, c *db.Collection, number int) (n int, err error) {
	b := d.NewBatch()
	for i := range f.Tasks {
		err := open(ctx, splitPath(f.Dir, i, number), func(r io.Reader) error {
			return readShard(r, func(item *db.Item) error {
				n++
				if n%1000 == 0 && ctx.Err() != nil {
					return ctx.Err()
				}
				if err := b.Put(c, item); err != nil || !b.Full() {
					return err
				}
				err := b.Commit(ctx)
				b = d.NewBatch()
				return err
			})
		})
		if err != nil {
			return 0, err
		}
	}
	return n, b.Commit(ctx)
}

// forgetLost removes shard-NNNN.json of a shard whose repository no longer has the backup. Then Build makes
// the shard again.
func forgetLost(ctx context.Context, out string, number int) error {
	path := shardPath(out, number)
	if !exists(ctx, path) {
		return nil
	}
	var shard Shard
	if err := readJSON(ctx, path, &shard); err != nil {
		return err
	}
	in, err := store(ctx, join(out, shardName(number)))
	if err != nil {
		return err
	}
	_, err = backup.Find(ctx, in, backup.Choice{ID: shard.Backup})
	if errors.Is(err, backup.ErrNotFound) || errors.Is(err, backup.ErrNotRepository) ||
		errors.Is(err, backup.ErrNoBackup) {
		return remove(ctx, path)
	}
	return err
}

// onlyBackup removes all backups of a repository but one. A worker that died after its backup, or that a
// runner gave up too early, has left a backup of another database, and a restore could not tell which one is
// right.
func onlyBackup(ctx context.Context, repository, id string) error {
	in, err := store(ctx, repository)
	if err != nil {
		return err
	}
	all, err := backup.List(ctx, in)
	if err != nil {
		return fmt.Errorf("%s: %w", repository, err)
	}
	if !slices.ContainsFunc(all, func(m *backup.Manifest) bool { return m.ID == id }) {
		return inputError("%s: the backup %s has gone", repository, id)
	}
	for _, m := range all {
		if m.ID != id {
			if err := in.Delete(ctx, "backups/"+m.ID+".json"); err != nil { // docs/FORMAT.md
				return err
			}
		}
	}
	// also the objects of a worker that died in its backup, after half an hour
	_, err = backup.Prune(ctx, in, backup.PruneOptions{})
	return err
}
