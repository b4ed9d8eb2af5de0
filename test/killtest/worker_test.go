package killtest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
)

// An order tells the process to kill what to do. It is passed as JSON in the
// environment.
type order struct {
	Dir     string
	Seed    uint64
	NoSync  bool
	Writers int
	Next    int // number of the first operation of each writer
	Import  int // number of the import to continue
}

const orderVariable = "FDDHDB_KILLTEST_ORDER"

// A line is one message of the process.
type line struct {
	Who  int // number of a writer, or spaces, archivist or importer
	Op   *operation
	Done *result // of the operation that Who began last
	Err  string  // why the process gives up
}

// An operation is told before it begins. Its fields say what it will do.
type operation struct {
	N    int    // ascending for each writer
	Kind string // a change: "batch", "put", "merge" or "delete"; or an operation on spaces, copies or imports

	Changes []change `json:",omitempty"`
	Space   db.Space `json:",omitempty"`
	Load    int      `json:",omitempty"`

	Dir        string `json:",omitempty"` // the copy, beside the database
	Collection string `json:",omitempty"` // the only collection of a copy
	IndexOnly  bool   `json:",omitempty"`
}

type change struct {
	Kind string
	Key  string
}

// A result is told once an operation has been acknowledged.
type result struct {
	Refused  string   // why it has done nothing
	Space    db.Space // the space that is new, or active now
	Active   bool
	Revision uint32
	ID       string // id of a backup
	Items    int    // of an import that are in
}

const (
	spaces    = -1 // changes spaces
	archivist = -2 // makes copies
	importer  = -3 // imports
)

// A worker works in the process to kill. Its goroutines share the output, which mu
// guards.
type worker struct {
	order
	d     *db.DB
	c     map[string]*db.Collection
	there contents // items of all writers, at the start

	mu  sync.Mutex
	out *json.Encoder
}

// work does the work of the process. It returns only if something fails.
func work(in string) {
	w := &worker{c: map[string]*db.Collection{}, out: json.NewEncoder(os.Stdout)}
	err := json.Unmarshal([]byte(in), &w.order)
	if err == nil {
		err = w.run(context.Background())
	}
	w.tell(line{Err: fmt.Sprint(err)})
}

func (w *worker) tell(l line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.out.Encode(l); err != nil {
		os.Exit(1) // nobody listens
	}
}

func (w *worker) run(ctx context.Context) (err error) {
	w.tell(line{Who: spaces, Op: &operation{Kind: "open"}})
	if w.d, err = db.Open(w.Dir, &db.Options{NoSync: w.NoSync}); err != nil {
		return err
	}
	for name, schema := range schemas {
		if w.c[name], err = w.d.Collection(name); errors.Is(err, db.ErrNotFound) {
			w.c[name], err = w.d.CreateCollection(ctx, name, schema)
		}
		if err != nil {
			return err
		}
	}
	if w.there, err = read(ctx, w.d, true); err != nil {
		return err
	}
	w.tell(line{Who: spaces, Done: &result{}})
	failed := make(chan error)
	for i := range w.Writers {
		go func() { failed <- w.write(ctx, i) }()
	}
	go func() { failed <- w.changeSpaces(ctx) }()
	go func() { failed <- w.makeCopies(ctx) }()
	if w.Seed%2 == 0 { // processes with an odd seed have more of the rest
		go func() { failed <- w.makeImports(ctx) }()
	}
	return <-failed
}

// do runs f for one operation, and tells its begin and its result.
func (w *worker) do(who int, op *operation, f func() (result, error)) error {
	w.tell(line{Who: who, Op: op})
	r, err := f()
	if err != nil {
		return fmt.Errorf("%+v: %w", op, err)
	}
	w.tell(line{Who: who, Done: &r})
	return nil
}

// write changes items whose keys belong to one writer.
func (w *worker) write(ctx context.Context, who int) error {
	r := rand.New(rand.NewPCG(w.Seed, uint64(who)))
	there := contents{}
	for key, v := range w.there {
		if ownerOf(key) == who {
			there[key] = v
		}
	}
	for n := w.Next; ; n++ {
		op := &operation{N: n, Kind: "batch"}
		prefix, changes := "pair", 1+r.IntN(6)
		if r.IntN(4) == 0 {
			prefix, changes = single, 1
		}
		for range changes {
			key := fmt.Sprintf("%s %d %d", prefix, who, r.IntN(30))
			if slices.ContainsFunc(op.Changes, func(ch change) bool { return ch.Key == key }) {
				continue
			}
			_, has := there[key]
			kind := []string{"put", "put", "merge", "delete"}[r.IntN(4)]
			if kind == "merge" && !has {
				kind = "put" // an item without codes cannot be merged
			}
			op.Changes = append(op.Changes, change{kind, key})
			there.apply(n, op.Changes[len(op.Changes)-1:])
		}
		if prefix == single {
			op.Kind = op.Changes[0].Kind
		}
		if err := w.do(who, op, func() (result, error) {
			return result{},
				w.apply(ctx, op, there)
		}); err != nil {
			return err
		}
	}
}

// apply makes changes to the versions, as operation n does.
func (c contents) apply(n int, changes []change) {
	for _, ch := range changes {
		switch ch.Kind {
		case "put":
			c[ch.Key] = version{n, n}
		case "merge":
			c[ch.Key] = version{c[ch.Key].Put, n}
		case "delete":
			delete(c, ch.Key)
		}
	}
}

func ownerOf(key string) (who int) {
	var prefix string
	var n int
	if _, err := fmt.Sscanf(key, "%s %d %d", &prefix, &who, &n); err != nil {
		return spaces
	}
	return who
}

// apply makes the changes of an operation in the database; after has the resulting
// versions. The payload of a merge also has the number of the operation that put the
// item.
func (w *worker) apply(ctx context.Context, op *operation, after contents) error {
	main := w.c[features]
	merged := func(key string) *db.Item { return &db.Item{Key: key, Payload: payload(after[key])} }
	switch ch := op.Changes[0]; op.Kind {
	case "put":
		_, err := main.Put(ctx, featureItem(ch.Key, after[ch.Key]))
		return err
	case "merge":
		_, err := main.Merge(ctx, merged(ch.Key))
		return err
	case "delete":
		_, err := main.Delete(ctx, ch.Key)
		return err
	}
	b := w.d.NewBatch()
	var err error
	for _, ch := range op.Changes {
		switch ch.Kind {
		case "put":
			err = errors.Join(err, b.Put(main, featureItem(ch.Key, after[ch.Key])),
				b.Put(w.c[codes], codeItem(ch.Key, after[ch.Key])))
		case "merge":
			err = errors.Join(err, b.Merge(main, merged(ch.Key)), b.Merge(w.c[codes], merged(ch.Key)))
		case "delete":
			err = errors.Join(err, b.Delete(main, ch.Key), b.Delete(w.c[codes], ch.Key))
		}
	}
	return errors.Join(err, b.Commit(ctx))
}

// changeSpaces trains, updates, activates, drops, alters, loads, merges labels and unloads.
func (w *worker) changeSpaces(ctx context.Context) error {
	r := rand.New(rand.NewPCG(w.Seed, 1<<32))
	c := w.c[features]
	there, err := loaded(ctx, w.d)
	if err != nil {
		return err
	}
	alterations, err := altered(w.d)
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		infos, err := c.Spaces(ctx)
		if err != nil {
			return err
		}
		op := &operation{N: n}
		var ids, idle []db.Space
		for _, s := range infos {
			ids = append(ids, s.Space)
			if s.State != report.SpaceActive {
				idle = append(idle, s.Space)
			}
		}
		var f func() (result, error)
		switch k := r.IntN(22); {
		case k >= 20 && alterations < maxAltered:
			alterations++
			op.Kind, op.Load = "alter", alterations
			f = func() (result, error) { return result{}, c.Alter(ctx, alteration(op.Load)) }
		case k < 4 && len(ids) < 3 || len(ids) == 0:
			opt := db.TrainOptions{Activate: r.IntN(2) == 0, Options: fit.Options{
				Bits: bits, Anchors: 6, Seed: uint64(n), Sweeps: 1, Fusion: fit.Fusion{Rule: fit.FusionSum},
				Map: map[string]model.MapKind{"image": model.MapRBF, "text": model.MapRBF},
			}}
			op.Kind = "train"
			f = func() (result, error) {
				t, err := c.Train(ctx, opt)
				if err != nil {
					return result{}, err
				}
				return result{Space: t.Space, Active: t.Active}, nil
			}
		case k < 6 && len(ids) < 4:
			op.Kind = "reindex"
			f = func() (result, error) {
				re, err := c.Reindex(ctx, db.ReindexOptions{Activate: r.IntN(2) == 0})
				if err != nil {
					return result{}, err
				}
				return result{Space: re.Space, Active: re.Active}, nil
			}
		case k < 12:
			op.Kind, op.Space = "update", ids[r.IntN(len(ids))]
			f = func() (result, error) {
				u, err := c.Update(ctx, db.UpdateOptions{Space: op.Space, Teacher: db.TeacherLabels,
					GrowLabels: r.IntN(2) == 0})
				if err != nil {
					return result{}, err
				}
				return result{Space: u.Space, Revision: u.Revision}, nil
			}
		case k < 14 && len(idle) > 0:
			op.Kind, op.Space = "activate", idle[r.IntN(len(idle))]
			f = func() (result, error) {
				return result{Space: op.Space, Active: true},
					c.Activate(ctx, op.Space)
			}
		case k < 17 && len(idle) > 0:
			op.Kind, op.Space = "drop", idle[r.IntN(len(idle))]
			f = func() (result, error) { return result{}, c.DropSpace(ctx, op.Space) }
		case k < 18:
			op.Kind = "compact"
			f = func() (result, error) { return result{}, w.d.Compact(ctx) }
		case len(there) == 0:
			op.Kind, op.Load = "load", 1+r.IntN(2)
			f = func() (result, error) {
				there[op.Load] = true
				b := w.d.NewBatch()
				for i := range loadItems {
					if err := b.Put(w.c[loads], loadItem(op.Load, i)); err != nil {
						return result{}, err
					}
				}
				return result{}, b.Commit(ctx)
			}
		default:
			for op.Load = range there {
			}
			op.Kind = "unload"
			f = func() (result, error) {
				delete(there, op.Load)
				_, err := w.c[loads].DeleteWhere(ctx, "load = ?", op.Load)
				return result{}, err
			}
		}
		err = w.do(spaces, op, func() (result, error) {
			res, err := f()
			if errors.Is(err, db.ErrInvalid) && op.Kind == "train" || errors.Is(err, db.ErrNoModel) {
				return result{Refused: err.Error()}, nil // too few labels, for example
			}
			return res, err
		})
		if err != nil {
			return err
		}
	}
}

// lines decodes the lines of a process, up to the one in which it was killed.
func lines(r *bufio.Reader, f func(line)) error {
	for {
		s, err := r.ReadString('\n')
		if err != nil {
			return nil // a line without an end says nothing
		}
		if !strings.HasPrefix(s, "{") {
			return fmt.Errorf("it says %q", s)
		}
		var l line
		if err := json.Unmarshal([]byte(s), &l); err != nil {
			return err
		}
		f(l)
	}
}
