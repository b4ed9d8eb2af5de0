package route

import (
	"context"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// AskAll asks replicas of several shards, as Ask does. Requests to shards that one node has go there in one
// message: a message there and back takes longer than most searches.
//
// errs has the error of each request, or nil. A request that is nil is left out.
func (r *Router) AskAll(ctx context.Context, requests []*wire.Request) (answers []*wire.Answer, errs []error) {
	answers, errs = make([]*wire.Answer, len(requests)), make([]error, len(requests))
	turn := r.next.Add(1)
	groups := map[string][]int{} // by node: requests
	for i, q := range requests {
		if q == nil {
			continue
		}
		node := "" // none: Ask says so
		if nodes := r.order(q.Shard, turn); len(nodes) > 0 {
			node = nodes[0]
		}
		groups[node] = append(groups[node], i)
	}
	var all sync.WaitGroup
	for node, group := range groups {
		all.Go(func() {
			for _, i := range r.several(ctx, node, group, requests, answers, errs) {
				all.Go(func() { answers[i], errs[i] = r.Ask(ctx, requests[i]) })
			}
		})
	}
	all.Wait()
	return answers, errs
}

// several asks a node for a group of requests in one message. It returns those that it has not answered, or
// cannot: others may.
func (r *Router) several(ctx context.Context, node string, group []int, requests []*wire.Request, answers []*wire.Answer, errs []error) (left []int) {
	if len(group) == 1 || node == "" {
		return group
	}
	q := &wire.Request{Verb: wire.Several}
	for _, i := range group {
		q.Requests = append(q.Requests, requests[i])
	}
	data, err := q.Encode()
	if err != nil {
		return group // and Ask says why
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lost := r.connection()
	replies := make(chan reply, 1)
	go func() { replies <- r.try(ctx, node, data) }()
	late := time.NewTimer(r.times.late())
	defer late.Stop()
	var got reply
	select {
	case got = <-replies:
	case <-late.C:
		r.Figures.Hedges.Add(uint64(len(group)))
		r.suspect(node, lateFor)
		return group
	case <-lost:
		return group
	case <-ctx.Done():
		return group
	}
	if got.err != nil || got.answer.Fault != nil || len(got.answer.Answers) != len(group) {
		r.Figures.Retries.Add(uint64(len(group)))
		return group
	}
	r.times.add(got.took)
	r.Figures.Requests.Add(uint64(len(group)))
	for k, i := range group {
		a := got.answer.Answers[k]
		switch {
		case a == nil || a.Fault != nil && !wire.Final(a.Fault):
			left = append(left, i)
		case a.Fault != nil:
			answers[i], errs[i] = a, a.Fault
		default:
			answers[i] = a
		}
	}
	return left
}
