package backup

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fddhdb/fddhdb/internal/seed"
)

var simRuns = flag.Int("sim.runs", 0, "how many interleavings of backups and prunes to try")

// A sim is a store that orders the calls of several processes by a seed. Calls wait
// until they are released; when no process moves any more, one of them is released. A
// list is two events; changes between them may or may not be in it.
type sim struct {
	t       *testing.T
	r       *rand.Rand
	objects map[string]simObject
	mu      sync.Mutex // guards everything while processes move
	waiting []*simCall
	skew    time.Duration // offset of the clock of the store
	history []string

	complete map[string]*Manifest // backups that have been acknowledged
	keep     int                  // of every prune
	trouble  trouble
}

// trouble is what befalls processes besides concurrency.
type trouble int

const (
	calm    trouble = iota // nothing
	killing                // they are killed and cancelled, and the store fails
	late                   // they also stall for hours
)

type simObject struct {
	b        []byte
	modified time.Time
}

// simCall is a waiting call. It is released to go on or to fail.
type simCall struct {
	p    *process
	what string
	goon chan error
}

// decisive reports whether it matters what happens just before the call, and whether it
// happens.
func (c *simCall) decisive() bool {
	return strings.HasPrefix(c.what, "put "+backups) || strings.HasPrefix(c.what, "put "+pruning) ||
		strings.HasPrefix(c.what, "delete "+objects) || c.what == "list "+pruning
}

// A process calls the store until it is killed.
type process struct {
	s      *sim
	name   string
	killed bool
	asleep int    // for so many events it does nothing
	latest string // manifest of a backup that it has put
	cancel context.CancelFunc
}

var (
	errKilled = errors.New("killed")
	errFails  = errors.New("the store has failed")
)

// wait waits until the call is released.
func (p *process) wait(ctx context.Context, what string) error {
	p.s.mu.Lock()
	killed := p.killed
	p.s.mu.Unlock()
	if killed {
		return errKilled
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c := &simCall{p, what, make(chan error)}
	p.s.mu.Lock()
	p.s.waiting = append(p.s.waiting, c)
	p.s.mu.Unlock()
	return <-c.goon
}

// call waits, and then runs do at once, while nothing else moves. A call that fails, or
// whose process is killed, may still have run.
func (s *sim) call(p *process, ctx context.Context, what string, do func()) error {
	err := p.wait(ctx, what)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil || errors.Is(err, errFails) && s.r.IntN(2) == 0 ||
		errors.Is(err, errKilled) && !p.killed && s.r.IntN(2) == 0 {
		do()
	}
	return err
}

func (p *process) Put(ctx context.Context, name string, r io.ReadSeeker, size int64) error {
	b, err := io.ReadAll(r)
	if err != nil || int64(len(b)) != size || CheckName(name) != nil {
		p.s.t.Errorf("put %s: %d bytes of %d, %v", name, len(b), size, err)
	}
	return p.s.call(p, ctx, "put "+name, func() {
		if _, there := p.s.objects[name]; there &&
			(strings.HasPrefix(name, objects) || strings.HasPrefix(name, backups)) {
			p.s.t.Errorf("%s is put twice", name)
		}
		p.s.objects[name] = simObject{b, time.Now().Add(p.s.skew)}
		if strings.HasPrefix(name, backups) {
			p.latest = name
		}
		p.s.check(p, name)
	})
}

func (p *process) Get(ctx context.Context, name string) (r io.ReadCloser, err error) {
	err = fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	if failed := p.s.call(p, ctx, "get "+name, func() {
		if o, ok := p.s.objects[name]; ok {
			r, err = io.NopCloser(bytes.NewReader(o.b)), nil
		}
	}); failed != nil {
		return nil, failed
	}
	return r, err
}

func (p *process) List(ctx context.Context, prefix string, f func(Object) error) error {
	before := map[string]Object{}
	see := func(into map[string]Object) func() {
		return func() {
			for name, o := range p.s.objects {
				if strings.HasPrefix(name, prefix) {
					into[name] = Object{name, int64(len(o.b)), o.modified}
				}
			}
		}
	}
	if err := p.s.call(p, ctx, "list "+prefix, see(before)); err != nil {
		return err
	}
	after := map[string]Object{}
	coin := uint64(0)
	if err := p.s.call(p, ctx, "listed "+prefix, func() { see(after)(); coin = p.s.r.Uint64() }); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(coin, 1))
	all := map[string]Object{}
	for _, name := range sorted(before) {
		if _, still := after[name]; still || r.IntN(2) == 0 {
			all[name] = before[name]
		}
	}
	for _, name := range sorted(after) {
		if _, was := before[name]; !was && r.IntN(2) == 0 {
			all[name] = after[name]
		}
	}
	for _, name := range sorted(all) {
		if err := f(all[name]); err != nil {
			return err
		}
	}
	return nil
}

// Delete deletes an object. A failed call may delete it later.
func (p *process) Delete(ctx context.Context, name string) error {
	do := func() {
		delete(p.s.objects, name)
		if piece, ok := pieceOf(name); ok && p.s.trouble < late {
			if _, living := p.s.objects[jsonName(running, piece.owner())]; living {
				p.s.t.Errorf("%s has deleted %s, which a backup that is being made has stored", p.name, name)
			}
		}
		p.s.check(p, name)
	}
	err := p.s.call(p, ctx, "delete "+name, do)
	if errors.Is(err, errFails) {
		later := &process{s: p.s, name: p.name + " later", asleep: p.s.r.IntN(1000)}
		go func() { _ = p.s.call(later, context.Background(), "delete "+name, do) }()
	}
	return err
}

// check checks that every complete backup that was not pruned has all of its objects,
// and that as many backups are there as are to be kept, or as were completed. If no
// process stalls for long, it also checks that a backup whose manifest is there never
// lacks an object, complete or not.
func (s *sim) check(p *process, name string) {
	if !strings.HasPrefix(name, objects) && !strings.HasPrefix(name, backups) {
		return
	}
	there := map[kind]int{}
	for other, o := range s.objects {
		id, ok := idOf(backups, other)
		if !ok {
			continue
		}
		m, err := DecodeManifest(o.b)
		switch {
		case err != nil:
			s.t.Errorf("%s: %v", other, err)
		case s.whole(m):
			there[m.kind()]++
		case s.complete[id] != nil:
			s.t.Errorf("%s has deleted %s, which backup %s needs", p.name, name, id)
		case s.trouble < late:
			s.t.Errorf("backup %s lacks something, though nobody stood still", id)
		}
	}
	ever := map[kind]int{}
	for _, m := range s.complete {
		ever[m.kind()]++
	}
	for k, n := range ever {
		if want := min(n, s.keep); there[k] < want {
			s.t.Errorf("%s: with %s gone there are %d backups, not %d", p.name, name, there[k], want)
		}
	}
}

// checkFailed checks that a backup with a missing object leaves no manifest when it
// fails; unless the store has failed, too, or a stalled prune may have deleted the
// object since.
func (s *sim) checkFailed(p *process, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble == calm {
		s.t.Errorf("%s has failed: %v", p.name, err)
	}
	if errors.Is(err, errKilled) || errors.Is(err, errFails) || errors.Is(err, context.Canceled) ||
		errors.Is(err, errCondemned) {
		return
	}
	if o, there := s.objects[p.latest]; there {
		if m, err := DecodeManifest(o.b); err != nil || !s.whole(m) {
			s.t.Errorf("%s has failed and left %s: %v", p.name, p.latest, err)
		}
	}
}

func (s *sim) whole(m *Manifest) bool {
	for _, o := range m.pieces() {
		if _, there := s.objects[o.object()]; !there {
			return false
		}
	}
	return true
}

// run releases calls until all processes have ended and no call is under way.
func (s *sim) run(processes []*process, ended func() bool) {
	for {
		s.settle()
		if ended() && len(s.waiting) == 0 {
			return
		}
		for _, p := range processes {
			switch {
			case p.asleep > 0:
				p.asleep--
			case s.r.IntN(150) == 0:
				p.asleep = s.r.IntN(60 << (2 * s.r.IntN(3)))
			case s.trouble > calm && s.r.IntN(600) == 0 && !p.killed:
				s.note("%s is cancelled", p.name)
				p.cancel()
			}
		}
		if s.trouble == late && s.r.IntN(40) == 0 {
			time.Sleep(time.Duration(s.r.IntN(3600)) * time.Second) // others may seem dead
			s.settle()
		}
		s.mu.Lock()
		for _, c := range s.waiting {
			if !slices.Contains(processes, c.p) && c.p.asleep > 0 {
				c.p.asleep--
			}
		}
		slices.SortStableFunc(s.waiting, func(a, b *simCall) int {
			return cmp.Or(strings.Compare(a.p.name, b.p.name), strings.Compare(a.what, b.what))
		})
		var able []int
		for i, c := range s.waiting {
			if c.p.asleep == 0 {
				able = append(able, i)
			}
		}
		if len(able) == 0 {
			idle := len(s.waiting) == 0
			s.mu.Unlock()
			if idle {
				time.Sleep(time.Second)
			}
			continue
		}
		i := able[s.r.IntN(len(able))]
		c := s.waiting[i]
		if c.decisive() && s.r.IntN(3) == 0 {
			c.p.asleep = 1 + s.r.IntN(300)
			s.mu.Unlock()
			if s.trouble == late {
				time.Sleep(time.Duration(s.r.IntN(2)) * time.Hour)
			}
			continue
		}
		s.waiting = slices.Delete(s.waiting, i, i+1)
		n := s.r.IntN(1000)
		switch {
		case s.trouble == calm:
			n = 1000
		case c.decisive():
			n /= 8
		}
		s.mu.Unlock()
		s.note("%s: %s", c.p.name, c.what)
		switch {
		case n < 6:
			s.note("%s is killed", c.p.name)
			c.goon <- errKilled
			s.settle()
			s.mu.Lock()
			c.p.killed = true
			var dies []*simCall
			s.waiting = slices.DeleteFunc(s.waiting, func(other *simCall) bool {
				if other.p == c.p {
					dies = append(dies, other)
				}
				return other.p == c.p
			})
			s.mu.Unlock()
			for _, other := range dies {
				other.goon <- errKilled
			}
		case n < 12:
			c.goon <- errFails
		default:
			c.goon <- nil
		}
	}
}

// settle waits until no process moves.
func (s *sim) settle() {
	synctest.Wait()
	s.mu.Lock() // for the race detector
	defer s.mu.Unlock()
}

func (s *sim) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history = append(s.history, fmt.Sprintf(format, args...))
}

// process starts a process.
func (s *sim) process(name string, work func(ctx context.Context, p *process)) (*process, <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{s: s, name: name, cancel: cancel}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		work(ctx, p)
	}()
	return p, done
}

// contentsOf returns the files of a database at one moment. There are few different
// contents, so that databases share some and some come back.
func contentsOf(r *rand.Rand) map[string][]byte {
	files := map[string][]byte{"FDDHDB": {1}}
	for range r.IntN(4) {
		b := make([]byte, 3)
		b[0] = byte(r.IntN(6))
		files[fmt.Sprintf("store/%06d.sst", r.IntN(5))] = b
	}
	return files
}

func sourcesOf(files map[string][]byte) []Source {
	var all []Source
	for _, path := range sorted(files) {
		all = append(all, Source{Path: path, Size: int64(len(files[path])), Open: func() (SourceFile, error) {
			return openBytes{bytes.NewReader(files[path])}, nil
		}})
	}
	return all
}

type openBytes struct{ *bytes.Reader }

func (openBytes) Close() error { return nil }

type target struct {
	*bytes.Buffer
}

func (target) Sync() error  { return nil }
func (target) Close() error { return nil }

// simulate tries one interleaving, and returns how many backups were completed.
func simulate(t *testing.T, seed uint64) (completed int) {
	synctest.Test(t, func(t *testing.T) {
		s := &sim{t: t, r: rand.New(rand.NewPCG(seed, 0)), objects: map[string]simObject{},
			complete: map[string]*Manifest{}}
		s.trouble = []trouble{calm, killing, late, late}[s.r.IntN(4)]
		s.keep, s.skew = 1+s.r.IntN(2), time.Duration(s.r.IntN(7200)-3600)*time.Second
		latest.Time = time.Time{} // from another run
		var ids uint64
		fillRandom = func(b []byte) {
			s.mu.Lock()
			defer s.mu.Unlock()
			ids++
			copy(b, binary.BigEndian.AppendUint64(nil, ids*0x9e3779b97f4a7c15))
		}
		want := map[string]map[string][]byte{}
		var processes []*process
		var ends []<-chan struct{}
		start := func(name string, work func(ctx context.Context, p *process)) {
			p, done := s.process(name, work)
			processes, ends = append(processes, p), append(ends, done)
		}
		for i := range 3 {
			own := rand.New(rand.NewPCG(seed, uint64(i+10)))
			start(fmt.Sprintf("backup%d", i), func(ctx context.Context, p *process) {
				for range 3 {
					files := contentsOf(own)
					m, err := Create(ctx, p, Manifest{Database: fmt.Sprint(i % 2)}, sourcesOf(files),
						CreateOptions{})
					if err == nil {
						s.note("%s has completed %s", p.name, m.ID)
						s.mu.Lock()
						s.complete[m.ID], want[m.ID] = m, files
						if _, there := s.objects[jsonName(backups, m.ID)]; there && !s.whole(m) {
							t.Errorf("backup %s lacks something when it is complete", m.ID)
						}
						completed++
						s.mu.Unlock()
					} else {
						s.checkFailed(p, err)
					}
					time.Sleep(time.Duration(own.IntN(1000)) * time.Millisecond)
				}
			})
		}
		for i := range 2 {
			own := rand.New(rand.NewPCG(seed, uint64(i+20)))
			start(fmt.Sprintf("prune%d", i), func(ctx context.Context, p *process) {
				for range 3 {
					time.Sleep(time.Duration(own.IntN(1000)) * time.Millisecond)
					if _, err := Prune(ctx, p, PruneOptions{Keep: s.keep}); err != nil &&
						!errors.Is(err, ErrNotRepository) && !errors.Is(err, ErrNoBackup) &&
						s.trouble == calm {
						t.Errorf("%s has failed: %v", p.name, err)
					}
				}
			})
		}
		s.run(processes, func() bool {
			for _, done := range ends {
				select {
				case <-done:
				default:
					return false
				}
			}
			return true
		})
		s.afterwards(want)
		if t.Failed() {
			t.Logf("seed %d:\n%s", seed, strings.Join(s.history, "\n"))
		}
	})
	return completed
}

// afterwards checks the end state: backups can be fetched, and a prune collects
// everything else.
func (s *sim) afterwards(want map[string]map[string][]byte) {
	t := s.t
	store := newMemStore()
	for name, o := range s.objects {
		store.objects[name] = o
	}
	if len(s.complete) == 0 {
		return
	}
	time.Sleep(24 * time.Hour)
	for range 2 {
		if _, err := Prune(t.Context(), store, PruneOptions{}); err != nil {
			t.Errorf("the last prune: %v", err)
		}
	}
	all, err := List(t.Context(), store)
	if err != nil {
		t.Error(err)
		return
	}
	named := map[string]bool{markerName: true}
	for _, m := range all {
		m, err := Find(t.Context(), store, Choice{ID: m.ID})
		if err != nil {
			t.Error(err)
			continue
		}
		named[jsonName(backups, m.ID)] = true
		for _, o := range m.pieces() {
			named[o.object()] = true
		}
		if s.complete[m.ID] == nil {
			continue // it was not acknowledged
		}
		got := map[string]*bytes.Buffer{}
		files := make(chan struct{}, 1)
		err = Fetch(t.Context(), store, m, func(path string) (Target, error) {
			files <- struct{}{}
			defer func() { <-files }()
			got[path] = new(bytes.Buffer)
			return target{got[path]}, nil
		}, FetchOptions{})
		if err != nil || len(got) != len(want[m.ID]) {
			t.Errorf("fetch %s: %v", m.ID, err)
		}
		for path, b := range want[m.ID] {
			if got[path] == nil || !bytes.Equal(got[path].Bytes(), b) {
				t.Errorf("backup %s: %s is another one", m.ID, path)
			}
		}
	}
	for name, o := range store.objects {
		if strings.HasPrefix(name, pruning) {
			// The plan stays while it names an object that a backup had come to need.
			var p plan
			err := json.Unmarshal(o.b, &p)
			named[name] = err == nil &&
				slices.ContainsFunc(p.Objects, func(o Piece) bool { return named[o.object()] })
		}
		if !named[name] {
			t.Errorf("%s is still there", name)
		}
	}
}

// Calls of backups and prunes happen in any order, and processes are killed, cancelled,
// taken for dead, or meet an error of the store. A completed backup always has all of
// its objects and is deleted only for newer ones, and unneeded objects are collected.
func TestInterleavings(t *testing.T) {
	defer func(f func([]byte), n int) { fillRandom, maxPlan = f, n }(fillRandom, maxPlan)
	maxPlan = 2
	runs := 400
	if testing.Short() {
		runs = 30
	}
	if *simRuns > 0 {
		runs = *simRuns
	}
	completed, first := 0, seed.From(t, 1)
	for i := range uint64(runs) {
		completed += simulate(t, first+i)
		if t.Failed() {
			t.Fatalf("repeat it with -args -sim.runs 1 -seed %d", first+i)
		}
	}
	t.Logf("%d backups completed in %d interleavings", completed, runs)
	if runs > 1 && completed < runs {
		t.Errorf("only %d backups were completed", completed)
	}
}
