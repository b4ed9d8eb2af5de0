// Package replica is a shard on a node: a database, the goroutine that applies the log to it, and the answers
// to requests.
//
// An answer shows the whole state after some message of the log: never half an operation, and never an older
// state than the request needs.
package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/plan"
	"github.com/fddhdb/fddhdb/db/cluster/internal/vault"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// Config has the parts of a replica.
type Config struct {
	Cluster string // plan.Settings.ID
	Shard   int
	Shards  int        // of the cluster
	Dir     string     // of the database
	Options db.Options // for opening it
	Journal *journal.Journal
	Conn    *nats.Conn
	Vault   vault.Vault           // place for backups; may be none
	Base    func() plan.Placement // plan.Plan.Placement of the shard
	Log     *slog.Logger

	Turns chan struct{} // the replicas of a node take at what needs a processor for long
}

// A Replica is a shard on a node. Its methods may be called from any goroutine.
type Replica struct {
	Config
	stop context.CancelFunc
	done chan struct{}

	rebuild atomic.Bool // Rebuild was called, and its work is not done

	stopped atomic.Pointer[context.CancelCauseFunc] // ends following the log
	stuck   atomic.Uint64                           // the message that could not be applied; 0: none

	state atomic.Pointer[apply.State] // nil: the database is not open. A closed one returns errors
	// the replica answers once it has applied this sequence: the end of the log when it began to follow
	reached atomic.Uint64
	follows atomic.Bool // reached is known, and the log is the one that it has applied

	trouble atomic.Pointer[error] // why the log is not applied, or the database not open

	unindex func() // ends the goroutine that indexes, and waits for it; of the open database

	learning sessions
	backing  sync.Mutex // one backup at a time

	applied atomic.Uint64 // operations since the start
}

// Start opens the database and applies the log, both in the background.
func Start(c Config) *Replica {
	ctx, stop := context.WithCancel(context.Background())
	c.Log = c.Log.With("shard", c.Shard)
	r := &Replica{Config: c, stop: stop, done: make(chan struct{})}
	go r.run(ctx)
	return r
}

// Close stops applying, and closes the database when all requests in progress are answered.
func (r *Replica) Close() error {
	r.stop()
	<-r.done
	return r.close()
}

func (r *Replica) close() error {
	s := r.state.Swap(nil)
	if s == nil {
		return nil
	}
	r.unindex()
	s.End()
	return s.DB.Close() // waits for requests in progress
}

// Pauses after an error: the first, and the longest.
const (
	leastPause = 100 * time.Millisecond
	mostPause  = 5 * time.Second
)

// run opens the database and applies the log until the context ends. It retries after errors, which may be
// transient: a full disk, a log without a leader.
func (r *Replica) run(ctx context.Context) {
	defer close(r.done)
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		begin := time.Now()
		err := r.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(begin) > time.Minute {
			pause = leastPause
		}
		if r.rebuild.Load() {
			if err = r.aside(errRebuild); err == nil {
				r.rebuild.Store(false)
				pause = leastPause
				continue
			}
		}
		r.trouble.Store(&err)
		r.Log.Warn("the log is not applied", "error", err, "again_in", pause)
		if errors.Is(err, db.ErrFailed) { // only reopening mends that
			if err := r.close(); err != nil {
				r.Log.Warn("closing the database", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// follow opens the database, unless it is open, and applies the log until the context ends or an error
// occurs.
func (r *Replica) follow(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil { // the host must go on
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if r.rebuild.Load() {
		return errRebuild
	}
	s, err := r.open(ctx)
	if errors.Is(err, apply.ErrOther) {
		return errors.Join(err, r.aside(err))
	}
	if err != nil {
		return err
	}
	at := s.Position()
	last, err := r.continues(ctx, at)
	if err != nil {
		var gap *apply.GapError
		if errors.As(err, &gap) {
			if _, _, none := r.base(ctx, journal.Info{First: gap.Next, Last: math.MaxUint64}); none != nil {
				return errors.Join(err, none) // the database stays, and does not answer
			}
			return errors.Join(err, r.aside(err))
		}
		return err
	}
	if !r.follows.Load() || at.Seq == 0 {
		r.reached.Store(last)
	}
	skips, err := r.Journal.Skips(ctx)
	if err != nil {
		return err
	}
	others := make([]apply.Message, len(skips))
	for i, m := range skips {
		others[i] = m.Message
	}
	s.SkipAll(others)
	if m, err := r.Journal.At(ctx, at.Seq); err == nil { // otherwise the next day is compared
		s.Began(m.Time)
	}
	r.follows.Store(true)
	r.trouble.Store(nil)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.stopped.Store(&stop)
	if r.rebuild.Load() { // Rebuild may have ended an earlier run instead
		return errRebuild
	}
	go r.look(ctx, s, stop)
	return r.Journal.Follow(ctx, at.Seq+1, func(some []journal.Read) error {
		messages := make([]apply.Message, len(some))
		replies := make(map[uint64]string, len(some))
		for i, m := range some {
			messages[i] = m.Message
			if m.Reply != "" {
				replies[m.Seq] = m.Reply
			}
		}
		done, err := r.apply(ctx, s, messages)
		r.applied.Add(uint64(len(done)))
		for _, a := range done {
			r.tell(replies[a.Seq], a.Outcome)
		}
		return err
	})
}

// apply applies messages, and notes the one that stops it. Trouble with the disk, the database or the log is
// no fault of a message.
func (r *Replica) apply(ctx context.Context, s *apply.State, messages []apply.Message) (done []apply.Applied,
	err error) {
	defer func() {
		if p := recover(); p != nil { // an unforeseen message: the host must go on
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		r.stuck.Store(0)
		for _, other := range []error{ctx.Err(), db.ErrDiskFull, db.ErrFailed, db.ErrClosed, db.ErrCorrupt} {
			if other != nil && errors.Is(err, other) {
				return
			}
		}
		if err != nil && !breaks(err) {
			r.stuck.Store(s.Position().Seq + 1)
		}
	}()
	return s.Apply(ctx, messages)
}

// options are the options with which the database is opened, wherever it is.
func (r *Replica) options() db.Options {
	opts := r.Options
	opts.NoSync = true   // the log is durable: data lost here comes from there again
	opts.NoResume = true // the log says when codes are made
	return opts
}

func (r *Replica) open(ctx context.Context) (*apply.State, error) {
	if s := r.state.Load(); s != nil {
		return s, nil
	}
	r.follows.Store(false)
	if err := r.join(ctx); err != nil {
		return nil, err
	}
	opts := r.options()
	d, err := db.Open(r.Dir, &opts)
	if err != nil {
		return nil, err
	}
	s, err := apply.Open(ctx, d, r.identity())
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	s.ShareTurns(r.Turns)
	r.stuck.Store(0)
	indexing, stop := context.WithCancel(context.Background())
	var indexed sync.WaitGroup
	indexed.Go(func() { r.index(indexing, s) })
	r.unindex = func() { stop(); indexed.Wait() }
	r.state.Store(s)
	r.Log.Info("replica opened", "position", s.Position().Seq)
	return s, nil
}

var errRebuild = errors.New("fddhdb: an operator wants the replica to be made again")

// Rebuild moves the database aside, and makes it again of the newest backup and the log, in the background,
// whatever trouble it has. Until the old database is gone, Status has a problem.
func (r *Replica) Rebuild() {
	r.rebuild.Store(true)
	r.follows.Store(false)
	if stop := r.stopped.Load(); stop != nil {
		(*stop)(errRebuild)
	}
}

// A DivergedError says that the log differs from the one that the replica has applied: its servers have lost
// acknowledged messages.
type DivergedError struct {
	Shard int
	At    uint64
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("fddhdb: the log of shard %d does not have message %d as this replica has applied it",
		e.Shard, e.At)
}

// identity names the shard that the database is a replica of.
func (r *Replica) identity() apply.Identity {
	return apply.Identity{Cluster: r.Cluster, Shard: r.Shard, Shards: r.Shards}
}

// every is how often a replica compares its state with the log.
const every = time.Minute

// look compares the applied position with the log now and then, and ends follow if they differ: a log
// may lose its last messages, and get others in their place.
func (r *Replica) look(ctx context.Context, s *apply.State, stop context.CancelCauseFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
		if _, err := r.continues(ctx, s.Position()); breaks(err) {
			stop(err)
			return
		}
	}
}

// index makes the indexes of vectors that the log asks for, while the database is open. What could not be
// made it tries again: the first items may have come.
func (r *Replica) index(ctx context.Context, s *apply.State) {
	for {
		if err := r.indexOnce(ctx, s); err != nil && ctx.Err() == nil {
			r.Log.Warn("vectors are not indexed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.Indexing():
		case <-time.After(every):
		}
	}
}

func (r *Replica) indexOnce(ctx context.Context, s *apply.State) (err error) {
	defer func() {
		if p := recover(); p != nil { // the host must go on
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return s.MakeIndexes(ctx)
}

// breaks reports whether an error says that the log does not continue the applied messages.
func breaks(err error) bool {
	var diverged *DivergedError
	var gap *apply.GapError
	return errors.As(err, &diverged) || errors.As(err, &gap)
}

// continues checks that the log has, or had, the last applied message. It returns the last sequence of the
// log.
func (r *Replica) continues(ctx context.Context, at apply.Position) (last uint64, err error) {
	defer func() {
		if breaks(err) {
			r.follows.Store(false) // its answers would differ from other replicas
		}
	}()
	info, err := r.Journal.Info(ctx)
	switch {
	case err != nil:
		return 0, err
	case info.Last < at.Seq:
		return 0, &DivergedError{r.Shard, at.Seq}
	case info.First > at.Seq+1:
		return 0, &apply.GapError{After: at.Seq, Next: info.First}
	case at.Seq == 0 || info.First > at.Seq:
		return info.Last, nil
	}
	m, err := r.Journal.At(ctx, at.Seq)
	if errors.Is(err, journal.ErrNone) { // trimmed meanwhile
		return info.Last, nil
	} else if err != nil {
		return 0, err
	}
	if op, err := wire.DecodeOp(m.Data); err == nil && op.ID != at.ID && at.ID != (wire.ID{}) {
		return 0, &DivergedError{r.Shard, at.Seq}
	}
	return info.Last, nil
}

// tell sends the outcome of an operation to the waiting client, at the subject to.
func (r *Replica) tell(to string, o *wire.Outcome) {
	if !strings.HasPrefix(to, nats.InboxPrefix) { // a node may publish where a client may not
		return
	}
	if b, err := o.Encode(); err == nil {
		_ = r.Conn.Publish(to, b) // a client that misses it asks for it
	}
}

// A Status is the state of a replica.
type Status struct {
	Shard      int    `json:"shard"`
	Applied    uint64 `json:"applied"` // sequence
	Chain      uint64 `json:"chain"`
	Behind     uint64 `json:"behind"` // known messages that are not yet applied
	Items      int    `json:"items"`
	Problem    string `json:"problem,omitempty"`
	Operations uint64 `json:"operations"` // applied since the start

	// Unread messages of the log, since the start, were no operations, and changed nothing.
	Unread uint64 `json:"unread,omitempty"`

	// Stopped is the message that cannot be applied, as Problem says; 0: none.
	Stopped uint64 `json:"stopped,omitempty"`

	// Sum is a digest of all that the replica had behind message Checked, when a day began: equal for
	// replicas with the same Checked.
	Checked uint64 `json:"checked,omitempty"`
	Sum     uint64 `json:"sum,omitempty"`
}

// Opening is the Problem of a replica that is being opened, unless it has another one.
const Opening = "it is being opened"

// Status returns the state of the replica.
func (r *Replica) Status() Status {
	s := Status{Shard: r.Shard, Operations: r.applied.Load(), Stopped: r.stuck.Load()}
	if err := r.trouble.Load(); err != nil {
		s.Problem = (*err).Error()
	}
	if r.rebuild.Load() {
		s.Problem = errRebuild.Error()
	}
	state := r.state.Load()
	if state == nil {
		if s.Problem == "" {
			s.Problem = Opening
		}
		return s
	}
	at := state.Position()
	s.Applied, s.Chain = at.Seq, at.Chain
	if told := r.Journal.Told(); told > at.Seq {
		s.Behind = told - at.Seq
	}
	s.Items, s.Unread = items(state.DB), state.Unread()
	s.Checked, s.Sum = state.Checked()
	return s
}
