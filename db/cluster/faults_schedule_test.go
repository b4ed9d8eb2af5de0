//go:build unix

package cluster_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/db/cluster/internal/netproxy"
)

// A scope is what a fault takes away. Of servers and of nodes one at a time is gone, so that a majority of
// servers and a replica of each shard stay. Rare faults take more, and all scopes with it.
type scope int

const (
	ofServers scope = iota
	ofNodes
	ofClients
	ofClocks // only with the build tag skew
	scopes
)

// A breakage is a kind of fault.
type breakage struct {
	what   string
	scope  scope
	weight int
	rare   bool
	// aim chooses a target, and returns its name and how to break and to mend it.
	aim func(s *site, r *rand.Rand) (target string, begin, end func() error)
}

// always turns calls of proxies into functions that may fail.
func always(fs ...func()) func() error {
	return func() error {
		for _, f := range fs {
			f()
		}
		return nil
	}
}

func someServer(s *site, r *rand.Rand) int { return r.IntN(siteServers) }

func someNode(s *site, r *rand.Rand) *nodeProcess { return s.nodes[r.IntN(siteNodes)] }

// clientNames are those that faults may hit. The probe is not among them.
var clientNames = []string{"c0", "c1", "c2", "c3", "c4"}

// door cuts a node or a client from one server, or from all.
func door(s *site, r *rand.Rand, of string) (string, func() error, func() error) {
	server, do := r.IntN(siteServers+1)-1, []func(*netproxy.Proxy){(*netproxy.Proxy).Cut,
		(*netproxy.Proxy).Reset}[r.IntN(2)]
	if server < 0 {
		of += " from all"
	} else {
		of += fmt.Sprint(" from server ", server)
	}
	name := of[:2]
	return of, always(func() { s.through(name, server, do) }),
		always(func() { s.through(name, server, (*netproxy.Proxy).Heal) })
}

var breakages = []breakage{
	{"kill node", ofNodes, 4, false, func(s *site, r *rand.Rand) (string, func() error, func() error) {
		n := someNode(s, r)
		return n.config.Node, n.kill, n.start
	}},
	{"pause node", ofNodes, 3, false, func(s *site, r *rand.Rand) (string, func() error, func() error) {
		n := someNode(s, r)
		return n.config.Node, n.pause, n.resume
	}},
	{"cut node", ofNodes, 3, false, func(s *site, r *rand.Rand) (string, func() error, func() error) {
		return door(s, r, someNode(s, r).config.Node)
	}},
	{"fill disk of node", ofNodes, 2, false, func(s *site, r *rand.Rand) (string, func() error,
		func() error) {
		dir := s.nodeDisk()
		if !s.small(dir) {
			return "", nil, nil
		}
		return s.nodes[siteNodes-1].config.Node, func() error { return fill(dir) },
			func() error { return empty(dir) }
	}},
	{"fill disk of server", ofServers, 2, false, func(s *site, r *rand.Rand) (string, func() error,
		func() error) {
		dir, i := s.serverDisk(), siteServers-1
		if !s.small(dir) {
			return "", nil, nil
		}
		// A server whose disk is full does without JetStream from then on, until it is started again.
		return s.servers.Name(i), func() error { return fill(dir) },
			func() error { return errors.Join(empty(dir), s.servers.Restart(i)) }
	}},
	{"kill server", ofServers, 4, false, func(s *site, r *rand.Rand) (string, func() error, func() error) {
		i := someServer(s, r)
		return s.servers.Name(i), func() error { return s.servers.Kill(i) },
			func() error { return s.servers.Restart(i) }
	}},
	{"end server in good order", ofServers, 4, false, func(s *site, r *rand.Rand) (string, func() error,
		func() error) {
		i := someServer(s, r)
		return s.servers.Name(i), func() error { return s.servers.End(i) },
			func() error { return s.servers.Restart(i) }
	}},
	{"step down", ofServers, 4, false, func(s *site, r *rand.Rand) (string, func() error, func() error) {
		shard := r.IntN(siteShards)
		return fmt.Sprint("leader of shard ", shard), func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			_, _ = s.admin.RequestWithContext(ctx, // it may have none, or a server that does not answer
				fmt.Sprint("$JS.API.STREAM.LEADER.STEPDOWN.FDDHDB_test_", shard), nil)
			return nil
		}, always()
	}},
	{"pause server", ofServers, 3, false, func(s *site, r *rand.Rand) (string, func() error, func() error) {
		i := someServer(s, r)
		return s.servers.Name(i), func() error { return s.servers.Pause(i) },
			func() error { return s.servers.Resume(i) }
	}},
	{"part server", ofServers, 3, false, func(s *site, r *rand.Rand) (string, func() error, func() error) {
		i := someServer(s, r)
		do := []func(*netproxy.Proxy){(*netproxy.Proxy).Cut, (*netproxy.Proxy).Reset}[r.IntN(2)]
		return s.servers.Name(i), always(func() { s.around(i, -1, do) }),
			always(func() { s.around(i, -1, (*netproxy.Proxy).Heal) })
	}},
	// which both reach the third
	{"part two servers", ofServers, 2, false, func(s *site, r *rand.Rand) (string, func() error,
		func() error) {
		i := someServer(s, r)
		k := (i + 1) % siteServers
		return fmt.Sprint(i, " and ", k), always(func() { s.around(i, k, (*netproxy.Proxy).Cut) }),
			always(func() { s.around(i, k, (*netproxy.Proxy).Heal) })
	}},
	{"delay server", ofServers, 2, false, func(s *site, r *rand.Rand) (string, func() error, func() error) {
		i, d := someServer(s, r), time.Duration(20+r.IntN(200))*time.Millisecond
		set := func(d time.Duration) func() {
			return func() { s.around(i, -1, func(p *netproxy.Proxy) { p.Delay(d) }) }
		}
		return s.servers.Name(i), always(set(d)), always(set(0))
	}},
	{"cut client", ofClients, 3, false, func(s *site, r *rand.Rand) (string, func() error, func() error) {
		return door(s, r, clientNames[r.IntN(len(clientNames))])
	}},
	// and so both replicas of a shard
	{"kill two nodes", ofNodes, 1, true, func(s *site, r *rand.Rand) (string, func() error, func() error) {
		i := r.IntN(siteNodes)
		a, b := s.nodes[i], s.nodes[(i+1)%siteNodes]
		return a.config.Node + ", " + b.config.Node, both(a.kill, b.kill), both(a.start, b.start)
	}},
	{"kill two servers", ofServers, 1, true, func(s *site, r *rand.Rand) (string, func() error,
		func() error) {
		i := someServer(s, r)
		return fmt.Sprint(i, ", ", (i+1)%siteServers), s.some(i, 2, s.servers.Kill),
			s.some(i, 2, s.servers.Restart)
	}},
	{"kill all servers", ofServers, 1, true, func(s *site, r *rand.Rand) (string, func() error,
		func() error) {
		i := someServer(s, r)
		return "", s.some(i, siteServers, s.servers.Kill), s.some(i, siteServers, s.servers.Restart)
	}},
}

func both(f, g func() error) func() error {
	return func() error { return errors.Join(f(), g()) }
}

// some calls do for n servers from the first on.
func (s *site) some(first, n int, do func(int) error) func() error {
	return func() (err error) {
		for i := range n {
			err = errors.Join(err, do((first+i)%siteServers))
		}
		return err
	}
}

// A planned is a fault of a schedule.
type planned struct {
	what       string
	at, until  time.Duration
	begin, end func() error
}

// These bound a schedule: faults begin in storms, and between two storms there is time enough for whatever
// is slow to mend.
const (
	storm = 45 * time.Second
	calm  = 25 * time.Second
	alone = 8 * time.Second // of each fault that a long run begins with
)

// single are faults that a long run begins with, one after the other, so that what they cost is measured.
var single = []string{"kill node", "pause node", "kill server", "pause server"}

// measured marks faults that come alone.
const measured = ", alone"

// schedule plans faults for a time. It follows from the seed alone.
func (s *site) schedule(r *rand.Rand, total time.Duration) (all []planned) {
	var busy [scopes]time.Duration // until when a scope has a fault
	weights, some := 0, []breakage{}
	for _, b := range breakages {
		if strings.Contains(b.what, *faultsOnly) {
			weights += b.weight
			some = append(some, b)
		}
	}
	if weights == 0 {
		s.t.Fatalf("-faults-only=%s: there is no such fault", *faultsOnly)
	}
	first := 2 * time.Second
	if total > time.Duration(len(single))*2*alone && *faultsOnly == "" {
		first += 3 * time.Second // and not in the unrest of the beginning
		for _, what := range single {
			i := slices.IndexFunc(breakages, func(b breakage) bool { return b.what == what })
			target, begin, end := breakages[i].aim(s, r)
			all = append(all, planned{what + " " + target + measured, first, first + alone, begin, end})
			first += 2 * alone
		}
	}
	for begin := first; begin < total; begin += storm + calm {
		end := min(begin+storm, total)
		for at := begin; at < end-time.Second; at += time.Second +
			time.Duration(r.IntN(2000))*time.Millisecond {
			until := min(at+time.Second+time.Duration(r.IntN(7000))*time.Millisecond, end)
			for range 20 { // until one fits to those that there are
				k := r.IntN(weights)
				i := slices.IndexFunc(some, func(b breakage) bool { k -= b.weight; return k < 0 })
				b := some[i]
				target, begin, end := b.aim(s, r)
				if begin == nil || busy[b.scope] > at || b.rare && slices.Max(busy[:]) > at {
					continue
				}
				busy[b.scope] = until
				if b.rare {
					for i := range busy {
						busy[i] = until
					}
				}
				all = append(all, planned{b.what + " " + target, at, until, begin, end})
				break
			}
		}
	}
	return all
}

// An action begins or ends a fault.
type action struct {
	at    time.Duration
	fault int
	begin bool
}

// actions returns what a schedule does, in order of time.
func actions(all []planned) (do []action) {
	for i, p := range all {
		do = append(do, action{p.at, i, true}, action{p.until, i, false})
	}
	slices.SortStableFunc(do, func(a, b action) int { return cmp.Compare(a.at, b.at) })
	return do
}
