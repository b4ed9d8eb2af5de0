package route

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// Ask sends the request to a replica of its shard, and to others until one answers or the context ends. An
// error of the request itself, such as db.ErrNotFound, is a *wire.Fault, the error in the answer. A
// *ShardError means that no replica answered.
func (r *Router) Ask(ctx context.Context, req *wire.Request) (*wire.Answer, error) {
	answers, errs := r.AskAll(ctx, []*wire.Request{req})
	return answers[0], errs[0]
}

// AskAll asks replicas of several shards, as Ask does. Requests to shards on one node go there in one
// message: a round trip takes longer than most searches. errs has the error of each request, or nil. A nil
// request is left out.
func (r *Router) AskAll(ctx context.Context,
	requests []*wire.Request) (answers []*wire.Answer, errs []error) {
	a := &call{
		r: r, ctx: ctx, waiter: r.inbox.waiter(), wants: make([]want, 0, len(requests)), now: time.Now(),
		answers: make([]*wire.Answer, len(requests)), errs: make([]error, len(requests)),
	}
	defer a.waiter.forget()
	for i, q := range requests {
		if q != nil {
			a.wants = append(a.wants, want{request: q, at: i, wait: between, patience: tryFor,
				last: errNoNode})
		}
	}
	a.left = len(a.wants)
	r.Figures.Requests.Add(uint64(a.left))
	a.run()
	return a.answers, a.errs
}

const (
	suspected = time.Second            // a silent node is asked last for so long
	lateFor   = 100 * time.Millisecond // a late node is asked last for so long
	// until all nodes are asked again because none answered; then twice as long
	tryFor   = time.Second
	between  = 20 * time.Millisecond  // between two rounds if all nodes have refused, at first
	mostWait = 500 * time.Millisecond // the longest such pause
)

var (
	errNoNode = errors.New("no node has it")
	errLost   = errors.New("the connection to the server was lost")
	errSilent = errors.New("no answer yet")
)

// A call is one call of AskAll, in one goroutine.
type call struct {
	r       *Router
	ctx     context.Context
	waiter  *waiter
	wants   []want
	left    int // wants without an answer
	now     time.Time
	answers []*wire.Answer
	errs    []error
}

// A want is a request without an answer yet. Its nodes are asked in rounds, one after the other; the next one
// as soon as one refuses, or is late.
type want struct {
	request *wire.Request
	at      int // index of the request
	done    bool

	nodes    []string // in the order in which to ask them
	round    int
	asked    int           // nodes asked in this round
	open     int           // asked nodes that have not answered
	due      time.Time     // when to ask the next node, or begin the next round
	wait     time.Duration // before the next round, if all have refused
	patience time.Duration // before the next round, if any is silent
	alone    bool          // a message with others has failed
	last     error         // why there is no answer
}

// A try is a message to a node. It counts until the call ends, however late its answer is.
type try struct {
	node  string
	wants []*want
	round []int // of each want
	begin time.Time
	got   []byte // parts of an answer
	total int    // bytes of the answer
	parts bool
}

// run asks until all requests are answered, or the context ends.
func (a *call) run() {
	lost := a.r.connection()
	all := make([]*want, len(a.wants))
	for i := range a.wants {
		all[i] = &a.wants[i]
	}
	turn := a.r.next.Add(1) // the same for all, so that shards of the same nodes go to one
	for _, w := range all {
		a.begin(w, turn)
	}
	a.next(all)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for a.left > 0 {
		timer.Reset(a.due().Sub(a.now))
		select {
		case <-a.waiter.signal:
			a.now = time.Now()
			var more []*want
			for _, l := range a.waiter.take() {
				more = append(more, a.came(l)...)
			}
			a.next(more)
		case <-timer.C:
			a.now = time.Now()
			a.next(a.late())
		case <-lost:
			a.now, lost = time.Now(), a.r.connection()
			a.void()
		case <-a.ctx.Done():
			a.giveUp(context.Cause(a.ctx), !errors.Is(a.ctx.Err(), context.Canceled))
		case <-a.r.closed:
			a.giveUp(db.ErrClosed, false)
		}
	}
}

// begin begins a round.
func (a *call) begin(w *want, turn uint64) {
	w.nodes = a.r.order(w.request.Shard, turn)
	w.round++
	w.asked, w.open = 0, 0
	if len(w.nodes) == 0 {
		a.pause(w)
	}
}

// pause delays the next round.
func (a *call) pause(w *want) {
	w.due = a.now.Add(w.wait)
	w.wait = min(2*w.wait, mostWait)
}

// due returns the time of the next action.
func (a *call) due() (first time.Time) {
	for i := range a.wants {
		if w := &a.wants[i]; !w.done && (first.IsZero() || w.due.Before(first)) {
			first = w.due
		}
	}
	return first
}

// late returns the wants whose next node is due.
func (a *call) late() (late []*want) {
	for i := range a.wants {
		w := &a.wants[i]
		switch {
		case w.done || w.due.After(a.now):
			continue
		case w.asked < len(w.nodes):
			a.r.Figures.Hedges.Add(1)
			a.r.suspect(w.nodes[w.asked-1], lateFor)
		default:
			if w.open > 0 {
				for _, node := range w.nodes {
					a.r.suspect(node, suspected)
				}
				w.last = errSilent
				w.patience *= 2
			}
			a.r.places.Refresh()
			a.r.Figures.Retries.Add(1)
			a.begin(w, a.r.next.Add(1))
		}
		if w.asked < len(w.nodes) {
			late = append(late, w)
		}
	}
	return late
}

// next asks the next node of each want. Wants with the same node share a message.
func (a *call) next(wants []*want) {
	for len(wants) > 0 {
		var group, others []*want
		node := ""
		for _, w := range wants {
			switch {
			case w.done || w.asked == len(w.nodes):
			case len(group) == 0:
				node, group = w.nodes[w.asked], append(group, w)
			case w.nodes[w.asked] == node && !w.alone && !group[0].alone:
				group = append(group, w)
			default:
				others = append(others, w)
			}
		}
		if len(group) > 0 {
			others = append(others, a.ask(node, group)...)
		}
		wants = others
	}
}

// ask asks a node. It returns the wants that must ask another node now.
func (a *call) ask(node string, wants []*want) (more []*want) {
	t := &try{node: node, wants: wants, round: make([]int, len(wants)), begin: a.now}
	late := a.r.times.late()
	for i, w := range wants {
		t.round[i] = w.round
		w.asked++
		w.open++
		if w.due = a.now.Add(late); w.asked == len(w.nodes) {
			w.due = a.now.Add(w.patience)
		}
	}
	q := wants[0].request
	if len(wants) > 1 {
		requests := make([]*wire.Request, len(wants))
		for i, w := range wants {
			requests[i] = w.request
		}
		q = wire.SeveralOf(requests)
	}
	if l := a.r.local; l != nil && l.Name() == node {
		number, inbox := a.waiter.expect(t), a.r.inbox
		l.Ask(a.ctx, q, func(answer *wire.Answer) { inbox.put(number, message{answer: answer}) })
		return nil
	}
	data, err := q.Encode()
	if err != nil && len(wants) == 1 {
		a.settle(wants[0], nil, err)
		return nil
	}
	if err == nil {
		err = a.send(t, data)
	}
	if err != nil {
		return a.failed(t, err)
	}
	return nil
}

func (a *call) send(t *try, data []byte) error {
	return a.r.nc.PublishRequest(a.r.cluster.Read(t.node), a.r.inbox.subject(a.waiter.expect(t)), data)
}

// came handles an answer. It returns the wants that must ask another node now.
func (a *call) came(l message) (more []*want) {
	answer, err := a.read(l)
	switch {
	case err != nil:
		return a.failed(l.of, err)
	case answer == nil: // more parts will come
		return nil
	}
	t := l.of
	if len(t.wants) == 1 {
		if a.answered(t, 0, answer) {
			more = append(more, t.wants[0])
		}
	} else {
		if answer.Fault != nil {
			return a.failed(t, answer.Fault)
		}
		if len(answer.Answers) != len(t.wants) {
			return a.failed(t, fmt.Errorf("%w: %d answers to %d requests", wire.ErrAnswer,
				len(answer.Answers), len(t.wants)))
		}
		for i, one := range answer.Answers {
			if a.answered(t, i, one) {
				more = append(more, t.wants[i])
			}
		}
	}
	a.r.times.add(a.now.Sub(t.begin))
	return more
}

// read returns the answer in a message, or nil if the message is a part of an answer.
func (a *call) read(l message) (*wire.Answer, error) {
	if l.answer != nil {
		return l.answer, nil
	}
	if len(l.m.Data) == 0 && l.m.Header.Get("Status") == "503" {
		return nil, nats.ErrNoResponders
	}
	answer, err := wire.DecodeAnswer(l.m.Data)
	if err != nil {
		return nil, err
	}
	t, p := l.of, answer.Part
	switch {
	case p == nil && !t.parts:
		return answer, nil
	case answer.Fault != nil:
		return nil, answer.Fault
	case p == nil || len(p.Data) == 0:
		return nil, fmt.Errorf("%w: a part without bytes", wire.ErrAnswer)
	case !t.parts && p.Total > wire.MaxAnswer:
		return nil, fmt.Errorf("%w: an answer of %d bytes: at most %d are possible", db.ErrInvalid, p.Total,
			wire.MaxAnswer)
	case !t.parts:
		t.parts, t.total = true, p.Total
	}
	if t.got = append(t.got, p.Data...); len(t.got) >= t.total {
		return wire.DecodeAnswer(t.got)
	}
	q, err := (&wire.Request{Verb: wire.Rest, ID: p.ID, Offset: len(t.got)}).Encode()
	if err != nil {
		return nil, err
	}
	return nil, a.send(t, q)
}

// answered handles the answer to one want of a try. It reports whether another node must be asked.
func (a *call) answered(t *try, i int, answer *wire.Answer) (more bool) {
	w := t.wants[i]
	switch {
	case answer == nil:
		return a.refused(t, i, fmt.Errorf("%w: no answer among those of others", wire.ErrAnswer))
	case answer.Fault == nil:
		a.settle(w, answer, nil)
	case wire.Final(answer.Fault):
		a.settle(w, answer, answer.Fault)
	default:
		return a.refused(t, i, answer.Fault)
	}
	return false
}

// failed handles a try without an answer to any of its wants. It returns the wants that must ask another
// node.
func (a *call) failed(t *try, err error) (more []*want) {
	for i, w := range t.wants {
		w.alone = w.alone || len(t.wants) > 1 && !errors.Is(err, nats.ErrNoResponders)
		if a.refused(t, i, err) {
			more = append(more, w)
		}
	}
	return more
}

// refused handles the refusal of one want by a node; another node may answer.
func (a *call) refused(t *try, i int, err error) (more bool) {
	a.r.suspect(t.node, suspected)
	w := t.wants[i]
	if w.done {
		return false
	}
	w.last = fmt.Errorf("node %s: %w", t.node, err)
	if t.round[i] != w.round {
		return false
	}
	w.open--
	if w.asked < len(w.nodes) {
		a.r.Figures.Retries.Add(1)
		return true
	}
	if w.open == 0 {
		a.pause(w)
	}
	return false
}

// settle ends a want.
func (a *call) settle(w *want, answer *wire.Answer, err error) {
	if w.done {
		return
	}
	w.done = true
	a.left--
	a.answers[w.at], a.errs[w.at] = answer, err
}

// void gives up all requests in flight: their answers do not come through another connection.
func (a *call) void() {
	a.waiter.forget()
	for i := range a.wants {
		w := &a.wants[i]
		w.last = errLost
		w.asked = len(w.nodes)
		w.open = 0
		w.round++
		a.pause(w)
	}
}

// giveUp ends all wants without an answer.
func (a *call) giveUp(why error, failed bool) {
	for i := range a.wants {
		w := &a.wants[i]
		if w.done {
			continue
		}
		if failed {
			a.r.Figures.Failed.Add(1)
		}
		a.settle(w, nil, &ShardError{Shard: w.request.Shard, Nodes: w.nodes,
			Err: fmt.Errorf("%w: %w", why, w.last)})
	}
}
