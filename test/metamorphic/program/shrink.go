package program

import (
	"slices"
	"time"
)

// Shrink returns a program that fails, too, and is as short as it could find until the
// deadline. It is delta debugging: first over the operations, then over what is in
// them. fails reports whether a program fails; if that is a matter of luck, it should
// try several times.
func Shrink(p *Program, deadline time.Time, fails func(*Program) bool) *Program {
	s := &shrinker{best: p, deadline: deadline, fails: fails}
	for again := true; again; {
		before := s.best.String()
		s.options()
		s.operations()
		s.inside()
		again = s.best.String() != before && !s.late()
	}
	return s.best
}

type shrinker struct {
	best     *Program
	deadline time.Time
	fails    func(*Program) bool
}

func (s *shrinker) late() bool { return time.Now().After(s.deadline) }

// try takes a program as the best one if it fails.
func (s *shrinker) try(p *Program) bool {
	if s.late() || !s.fails(p) {
		return false
	}
	s.best = p
	return true
}

func (s *shrinker) options() {
	for _, simpler := range []func(*Options){
		func(o *Options) { *o = Options{Disk: o.Disk} },
		func(o *Options) { o.NoSync = false },
		func(o *Options) { o.CacheBytes = 0 },
		func(o *Options) { o.IndexCacheBytes = 0 },
		func(o *Options) { o.RerankCacheBytes = 0 },
		func(o *Options) { o.KeyCacheBytes = 0 },
		func(o *Options) { o.UpdateItems = 0 },
		func(o *Options) { o.ReadOnly = false },
	} {
		o := s.best.Options
		if simpler(&o); o != s.best.Options {
			s.try(&Program{Options: o, Ops: s.best.Ops})
		}
	}
}

func (s *shrinker) operations() {
	s.list(s.best.Ops, func(ops []Op) *Program { return &Program{Options: s.best.Options, Ops: ops} })
}

// list removes parts of a list of operations, in smaller and smaller steps. with
// returns the program with the list in its place.
func (s *shrinker) list(ops []Op, with func([]Op) *Program) []Op {
	for size := len(ops); size > 0; size /= 2 {
		for from := 0; from < len(ops) && !s.late(); {
			less := slices.Delete(slices.Clone(ops), from, min(from+size, len(ops)))
			if s.try(with(less)) {
				ops = less
			} else {
				from += size
			}
		}
	}
	return ops
}

// inside makes single operations smaller.
func (s *shrinker) inside() {
	for i := range s.best.Ops {
		if s.late() {
			return
		}
		with := func(op Op) *Program {
			p := &Program{Options: s.best.Options, Ops: slices.Clone(s.best.Ops)}
			p.Ops[i] = op
			return p
		}
		for j := range s.best.Ops[i].Lanes {
			s.list(s.best.Ops[i].Lanes[j], func(lane []Op) *Program {
				op := s.best.Ops[i]
				op.Lanes = slices.Clone(op.Lanes)
				op.Lanes[j] = lane
				return with(op)
			})
		}
		s.list(s.best.Ops[i].Ops, func(ops []Op) *Program {
			op := s.best.Ops[i]
			op.Ops = ops
			return with(op)
		})
		s.simpler(func() Op { return s.best.Ops[i] }, with)
		for j := range s.best.Ops[i].Ops {
			s.simpler(func() Op { return s.best.Ops[i].Ops[j] }, func(change Op) *Program {
				op := s.best.Ops[i]
				op.Ops = slices.Clone(op.Ops)
				op.Ops[j] = change
				return with(op)
			})
		}
	}
}

// simpler leaves out what an operation does not need.
func (s *shrinker) simpler(now func() Op, with func(Op) *Program) {
	item := func(op *Op, change func(*Item)) {
		if op.Item != nil {
			it := *op.Item
			change(&it)
			op.Item = &it
		}
	}
	query := func(op *Op, change func(*Query)) {
		if op.Query != nil {
			q := *op.Query
			change(&q)
			op.Query = &q
		}
	}
	for _, change := range []func(*Op){
		func(op *Op) { op.At = "" },
		func(op *Op) { op.Where = nil },
		func(op *Op) { op.Options = nil },
		func(op *Op) { op.IndexOnly = false },
		func(op *Op) { op.Damage = "" },
		func(op *Op) { op.Crash = false },
		func(op *Op) {
			if op.Do == "alter" {
				op.Schema = &Schema{Modalities: op.Schema.Modalities}
			}
		},
		func(op *Op) {
			if op.Do == "alter" {
				op.Schema = &Schema{Fields: op.Schema.Fields}
			}
		},
		func(op *Op) {
			if op.Do == "alter" {
				op.Schema = &Schema{Index: op.Schema.Index, Words: op.Schema.Words}
			}
		},
		func(op *Op) {
			if op.Do == "alter" {
				op.Schema = &Schema{SpaceOf: op.Schema.SpaceOf, Metrics: op.Schema.Metrics}
			}
		},
		func(op *Op) {
			if op.Do == "backup" || op.Do == "checkpoint" {
				op.In = ""
			}
		},
		func(op *Op) { op.Keys = op.Keys[:min(1, len(op.Keys))] },
		func(op *Op) { op.Queries = op.Queries[:min(1, len(op.Queries))] },
		func(op *Op) { op.N = min(op.N, 1) },
		func(op *Op) { item(op, func(it *Item) { it.Fields = nil }) },
		func(op *Op) { item(op, func(it *Item) { it.Labels, it.Unlabel = nil, false }) },
		func(op *Op) { item(op, func(it *Item) { it.Labels = it.Labels[:min(1, len(it.Labels))] }) },
		func(op *Op) { item(op, func(it *Item) { it.Vectors, it.Sparse = nil, false }) },
		func(op *Op) { item(op, func(it *Item) { it.Sparse = false }) },
		func(op *Op) { item(op, func(it *Item) { it.Payload, it.Unload = "", false }) },
		func(op *Op) { query(op, func(q *Query) { q.Where = nil }) },
		func(op *Op) { query(op, func(q *Query) { q.Plan = "" }) },
		func(op *Op) { query(op, func(q *Query) { q.Least = 0 }) },
		func(op *Op) { query(op, func(q *Query) { q.Rerank = "" }) },
		func(op *Op) { query(op, func(q *Query) { q.Space = "" }) },
		func(op *Op) { query(op, func(q *Query) { q.Recall = 0 }) },
		func(op *Op) { query(op, func(q *Query) { q.Sparse = false }) },
		func(op *Op) { query(op, func(q *Query) { q.Exclude = false }) },
		func(op *Op) {
			if op.Index != nil {
				op.Index = &Index{Modality: op.Index.Modality}
			}
		},
		func(op *Op) {
			if op.Train != nil {
				op.Train = &Training{Bits: op.Train.Bits, Anchors: op.Train.Anchors, Free: op.Train.Free}
			}
		},
	} {
		op := now()
		change(&op)
		if p := with(op); p.String() != s.best.String() {
			s.try(p)
		}
	}
}
