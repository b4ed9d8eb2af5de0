package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/plan"
	"github.com/fddhdb/fddhdb/db/cluster/internal/replica"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// A split divides one shard into two parts.
//
// The parts start from one backup of the shard, which ends with the message at sequence origin. The first
// message in the log of a part, origin+1, is a purge; message s+1 stands for message s of the shard. So the
// log of a part tells how far it has come: a client needs nothing else to continue an interrupted split.
type split struct {
	growth *growth
	index  int
	number int
	log    *journal.Journal
	parts  [2]part
	ended  chan struct{}  // closed when the parts have everything
	begun  atomic.Bool    // the parts have started
	placed [2]bool        // the part has a placement
	least  uint64         // the backup covers at least the messages up to this sequence
	base   plan.Placement // of the first part, when Grow was called

	origin    atomic.Uint64 // sequence at which the parts start
	forwarded atomic.Uint64 // sequence up to which the logs of the parts have the shard's messages
	closed    atomic.Uint64 // sequence of the message behind which all messages are refused; 0: unknown
}

// A part is one of the two shards that replace a shard.
type part struct {
	number, index int
	log           *journal.Journal
	ill           map[string]time.Time // by node: since when its replica has a problem
}

// illFor is how long a growth waits for a replica with a problem if another replica is complete.
var illFor = 30 * time.Second

// isIll notes the problem of a node's replica, and reports whether it has lasted for illFor. A replica that
// is being opened may take any time: it may be fetching a backup.
func (p *part) isIll(node, problem string) bool {
	if problem == "" || problem == replica.Opening {
		delete(p.ill, node)
		return false
	}
	if p.ill == nil {
		p.ill = map[string]time.Time{}
	}
	if p.ill[node].IsZero() {
		p.ill[node] = time.Now()
	}
	return time.Since(p.ill[node]) > illFor
}

func (g *growth) log(number int) *journal.Journal {
	return journal.New(g.js, g.client.cluster, number)
}

func (g *growth) split(index int) *split {
	s := &split{growth: g, index: index, number: g.from.Number(index), ended: make(chan struct{})}
	s.log = g.log(s.number)
	for i, at := range g.from.Parts(index, g.to) {
		s.parts[i] = part{number: g.to.Number(at), index: at, log: g.log(g.to.Number(at))}
		s.placed[i] = slices.Contains(g.client.plan.Shards(), s.parts[i].number)
	}
	return s
}

// take continues the parts of an earlier call of Grow.
func (s *split) take(ctx context.Context) error {
	for i, part := range s.parts {
		if !s.placed[i] {
			continue
		}
		err := again(ctx, func(ctx context.Context) error {
			is, err := s.growth.claim.Take(ctx, part.number)
			if i == 0 {
				s.base = is
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// vacant has a node check that the place for backups has no backups of another cluster under the numbers of
// the parts: backups of the parts would not replace them.
func (s *split) vacant(ctx context.Context) (err error) {
	if s.placed[0] { // an earlier call has checked
		return nil
	}
	c := s.growth.client
	for _, node := range c.plan.Nodes(s.number) {
		if _, err = c.order(ctx, node, order{Do: "vacant", Shard: s.number}); err == nil ||
			errors.Is(err, db.ErrExists) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("shard %d: %w", s.number, err)
	}
	return nil
}

// errRestart says that the parts of a shard cannot continue, because the shard's log has been trimmed, or its
// replicas have forgotten outcomes. The parts start again from another backup.
var errRestart = errors.New("the parts of the shard begin anew")

// run splits the shard, up to the message that closes its log.
func (s *split) run(ctx context.Context) error {
	for first := true; ; first = false {
		is, err := s.begin(ctx)
		if err != nil {
			return err
		}
		if first {
			s.growth.progress(GrowBegin, int(s.growth.begun.Add(1)), len(s.growth.splits))
		}
		err = s.forward(ctx, is)
		if err == nil {
			close(s.ended)
			return nil
		}
		if !errors.Is(err, errRestart) {
			return err
		}
		if err := s.discard(ctx); err != nil {
			return err
		}
	}
}

// anew restarts the parts of a closed shard. It appends messages without effect to the shard's log, and the
// new backup must cover them. So the new logs begin far behind the end of the old ones, and no replica of the
// old logs continues with the new ones: it would be incomplete.
func (s *split) anew(ctx context.Context) (err error) {
	var beyond uint64
	for _, part := range s.parts {
		info, err := infoOf(ctx, part.log)
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
		beyond = max(beyond, info.Last)
	}
	for n := 0; n < 2 || s.least <= beyond; n++ {
		op := &wire.Op{ID: wire.NewID(), Kind: wire.Skip}
		b, err := op.Encode()
		if err != nil {
			return err
		}
		if s.least, _, err = s.log.Append(ctx, op.ID.String(), b, "", time.Time{}); err != nil {
			return err
		}
	}
	if err := s.discard(ctx); err != nil {
		return err
	}
	is, err := s.begin(ctx)
	if err != nil {
		return err
	}
	return s.forward(ctx, is)
}

// begin makes the logs of the parts and places the parts, unless an earlier call has.
func (s *split) begin(ctx context.Context) (is plan.Placement, err error) {
	p := s.growth.client.plan
	if s.placed[0] {
		is = s.base
	} else {
		if err := s.discard(ctx); err != nil {
			return is, err
		}
		if is, err = s.back(ctx); err != nil {
			return is, err
		}
	}
	for i, part := range s.parts {
		if s.placed[i] {
			continue
		}
		is.Nodes = slices.Clone(p.Nodes(s.number))
		s.placed[i] = true // even if Place fails
		err := again(ctx, func(ctx context.Context) error {
			return s.growth.claim.Place(ctx, part.number,
				is)
		})
		if err != nil {
			return is, err
		}
	}
	for _, part := range s.parts {
		purge := &wire.Op{ID: s.id("purge"), Kind: wire.Purge, Base: is.Origin}
		b, err := purge.Encode()
		if err == nil {
			err = part.log.Extend(ctx, is.Origin, [][]byte{b})
		}
		if err != nil {
			return is, err
		}
	}
	s.origin.Store(is.Origin)
	s.forwarded.Store(is.Origin)
	s.begun.Store(true)
	p.Refresh()
	return is, nil
}

// back makes a backup of the shard, and the logs of the parts, which begin behind it.
func (s *split) back(ctx context.Context) (is plan.Placement, err error) {
	var config journal.Config
	err = again(ctx, func(ctx context.Context) (err error) {
		config, err = s.log.Config(ctx)
		return err
	})
	if err != nil {
		return is, err
	}
	s.growth.backing.Lock()
	defer s.growth.backing.Unlock()
	if err := ctx.Err(); err != nil {
		return is, err
	}
	node, b, err := s.backed(ctx)
	switch {
	case err != nil:
		return is, fmt.Errorf("the parts begin with a backup: %w", err)
	case b.Least != b.Position:
		return is, fmt.Errorf("%w: node %s is of another version: it does not say where its backup ends",
			wire.ErrAnswer, node)
	}
	config.FirstSeq = b.Position + 1
	for _, part := range s.parts {
		if err := s.alone(ctx, func(ctx context.Context) error {
			return part.log.Create(ctx,
				config)
		}); err != nil {
			return is, err
		}
	}
	return plan.Placement{Base: b.Backup, Origin: b.Position, Split: true, Closed: b.Closed}, nil
}

// Backups are tried every backedEvery for backedIn while all nodes of a shard fail with a transient error.
const (
	backedIn    = 10 * time.Minute
	backedEvery = 500 * time.Millisecond
)

// backed has a node make a backup that ends at one message. It retries while all nodes have applied the next
// message in part, such as the installation of a model, or lag behind, or if another backup was ready first.
func (s *split) backed(ctx context.Context) (node string, b *replica.Backed, err error) {
	for begin := time.Now(); ; {
		node, b, err = s.growth.client.backed(ctx, s.number, order{Exact: true, From: s.least})
		passes := errors.Is(err, db.ErrBusy) || errors.Is(err, db.ErrConflict) ||
			errors.Is(err, wire.ErrBehind)
		if !passes || time.Since(begin) > backedIn {
			return node, b, err
		}
		select {
		case <-ctx.Done():
			return "", nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(backedEvery):
		}
	}
}

// discard removes the placements and logs of the parts.
func (s *split) discard(ctx context.Context) error {
	s.begun.Store(false)
	for i, part := range s.parts { // the first part first: begin goes by it
		if !s.placed[i] {
			continue
		}
		if err := again(ctx, func(ctx context.Context) error {
			return s.growth.claim.Remove(ctx,
				part.number)
		}); err != nil {
			return err
		}
		s.placed[i] = false
	}
	for _, part := range s.parts {
		if err := s.alone(ctx, part.log.Delete); err != nil {
			return err
		}
	}
	return nil
}

// alone is again for creating or deleting the log of a part. The servers cannot tell who owns that log, so
// alone checks before each try that no other client has taken over. A window of the one call remains. A
// client hits it only if it is stopped there for longer than a lease and resumes while the parts are made
// again.
func (s *split) alone(ctx context.Context, f func(ctx context.Context) error) error {
	return again(ctx, func(ctx context.Context) error {
		if err := s.growth.claim.Check(ctx); err != nil {
			return err
		}
		return f(ctx)
	})
}

// id returns the ID of an operation of the split, the same at each try.
func (s *split) id(what string) (id wire.ID) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%s", s.growth.client.plan.Settings.ID, s.number, what))
	copy(id[:], sum[:])
	return id
}

// lacks says how far the parts are behind the shard, or returns "". nodes are the nodes that answered.
func (s *split) lacks(ctx context.Context, nodes []NodeStatus) string {
	if !s.begun.Load() {
		return fmt.Sprintf("shard %d: its parts have not begun", s.number)
	}
	if s.closed.Load() == 0 {
		try, cancel := context.WithTimeout(ctx, callFor)
		defer cancel()
		info, err := s.log.Info(try)
		if err != nil {
			return err.Error()
		}
		if at := s.forwarded.Load(); at+nearlyMessages < info.Last {
			return fmt.Sprintf("shard %d: its parts have %d of %d messages", s.number, at, info.Last)
		}
	}
	purged, to := s.origin.Load()+1, s.forwarded.Load()+1 // the purge is one message, and may take long
	for k := range s.parts {
		part := &s.parts[k]
		placed, replicas, problem := s.growth.client.plan.Nodes(part.number), 0, ""
		for _, n := range nodes {
			if !slices.Contains(placed, n.Node) {
				continue
			}
			i := slices.IndexFunc(n.Shards, func(r ReplicaStatus) bool { return r.Shard == part.number })
			if i < 0 {
				if part.isIll(n.Node, "it does not have it") {
					continue
				}
				return fmt.Sprintf("node %s does not have shard %d yet", n.Node, part.number)
			}
			r := n.Shards[i]
			if part.isIll(n.Node, r.Problem) {
				problem = fmt.Sprintf(": node %s: %s", n.Node, r.Problem)
				continue
			}
			if r.Problem != "" || r.Applied < purged || r.Applied+nearlyMessages < to {
				return fmt.Sprintf("shard %d on node %s: it is at %d of %d %s", part.number, n.Node,
					r.Applied, to, r.Problem)
			}
			replicas++
		}
		if replicas == 0 {
			return fmt.Sprintf("no node of shard %d is well, of those that answer%s", part.number, problem)
		}
	}
	return ""
}

// close closes the log of the shard, unless it is closed.
func (s *split) close(ctx context.Context) error {
	if s.closed.Load() > 0 {
		return nil
	}
	op := &wire.Op{ID: s.id("close"), Kind: wire.Close, Base: s.forwarded.Load()}
	b, err := op.Encode()
	if err == nil {
		_, _, err = s.log.Append(ctx, op.ID.String(), b, "", time.Time{})
	}
	return err
}

// wait waits until the logs of the parts have everything.
func (s *split) wait(ctx context.Context) error {
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// whole waits, up to in, until a replica of each part has everything that the shard has, and compares their
// collections and items. why says what a part lacks.
func (s *split) whole(ctx context.Context, in time.Duration) (why, err error) {
	try, cancel := context.WithTimeoutCause(ctx, in, fmt.Errorf("%w: it is not at its end after %v",
		context.DeadlineExceeded, in))
	defer cancel()
	ask := func(number int, to uint64, names []string) ([]*wire.Answer, error) {
		requests := []*wire.Request{{Verb: wire.Collections, Shard: number, From: to, Wait: waitFor}}
		for _, name := range names {
			requests = append(requests, &wire.Request{Verb: wire.Count, Shard: number, From: to,
				Wait: waitFor, Collection: name})
		}
		answers, errs := s.growth.client.router.AskAll(try, requests)
		if err := errors.Join(errs...); err != nil {
			return nil, fmt.Errorf("shard %d: %w", number, cmp.Or(context.Cause(ctx), err))
		}
		slices.Sort(answers[0].Names)
		return answers, nil
	}
	has, err := ask(s.number, s.end(), nil)
	if err != nil {
		return nil, err
	}
	names := has[0].Names
	if has, err = ask(s.number, s.end(), names); err != nil {
		return nil, err
	}
	var parts [2][]*wire.Answer
	var errs [2]error
	var both sync.WaitGroup
	for i, part := range s.parts {
		both.Go(func() {
			if parts[i], errs[i] = ask(part.number, s.end()+1, names); errs[i] != nil {
				errs[i] = fmt.Errorf("a part of shard %d: %w", s.number, errs[i])
			}
		})
	}
	both.Wait()
	switch err := errors.Join(errs[:]...); {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil: // such as a collection that a part lacks
		return err, nil
	}
	a, b := s.parts[0].number, s.parts[1].number
	if x, y := parts[0][0].Names, parts[1][0].Names; !slices.Equal(names, x) || !slices.Equal(names, y) {
		return fmt.Errorf("%w: shard %d has the collections %q, and its parts %d and %d have %q and %q",
			db.ErrCorrupt, s.number, names, a, b, x, y), nil
	}
	for i, name := range names {
		if all, x, y := has[i+1].N, parts[0][i+1].N, parts[1][i+1].N; all != x+y {
			return fmt.Errorf("%w: collection %q has %d items in shard %d, and %d and %d in its parts %d and %d", db.ErrCorrupt, name, all, s.number, x, y, a, b), nil
		}
	}
	return nil, nil
}

// problems lists replicas of the parts with problems.
func (s *split) problems(nodes []NodeStatus) string {
	var b strings.Builder
	for _, part := range s.parts {
		for _, n := range nodes {
			for _, r := range n.Shards {
				if r.Shard == part.number && r.Problem != "" {
					fmt.Fprintf(&b, "; shard %d on node %s: %s", r.Shard, n.Node, r.Problem)
				}
			}
		}
	}
	return b.String()
}

// end returns the sequence of the shard's last message that counts: the one that closes its log, or the last
// one in the backup if that was made after the log was closed. In the logs of the parts it has sequence
// end()+1.
func (s *split) end() uint64 { return s.closed.Load() }
