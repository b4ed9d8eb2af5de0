package serve

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// keptJobs is how many jobs that have ended are kept, for their results.
const keptJobs = 100

// keptEvents is how many of the last events of a job are kept at least, for those who follow it slowly or
// come later.
const keptEvents = 10_000

// eventStream is the type of the events of a job.
const eventStream = "text/event-stream"

// maxJobs bounds the jobs that run at a time.
const maxJobs = 32

// jobs are the jobs of a server.
type jobs struct {
	mu     sync.Mutex
	byID   map[string]*job
	ended  []*job // the oldest first
	active int
}

// A job is work that lasts longer than a request. Its fields are guarded by mu.
type job struct {
	cancel context.CancelCauseFunc
	access *Access // who has begun it
	over   bool    // it has ended; guarded by the lock of all jobs

	mu     sync.Mutex
	form   rest.Job
	events []event       // findings, the last ones
	gone   int           // events before these
	news   chan struct{} // closed, and replaced, when something happens
}

// An event is an event of a job, for an event stream.
type event struct {
	name string
	data any
}

// errGone is the cause of the end of a job whose request went away.
var errGone = errors.New("the client has gone")

// telling is what the work of a job tells of itself.
type telling struct{ j *job }

func (t telling) progress(stage string, done, total int64) {
	t.j.mu.Lock()
	defer t.j.mu.Unlock()
	t.j.form.Stage, t.j.form.Done, t.j.form.Total = stage, done, total
	t.j.wake()
}

// event tells a part of the result.
func (t telling) event(name string, data any) {
	t.j.mu.Lock()
	defer t.j.mu.Unlock()
	j := t.j
	if j.events = append(j.events, event{name, data}); len(j.events) >= 2*keptEvents {
		j.events = slices.Clone(j.events[keptEvents:]) // those who follow have seen the others
		j.gone += keptEvents
	}
	j.wake()
}

// wake wakes those who follow the job. The caller holds mu.
func (j *job) wake() {
	close(j.news)
	j.news = make(chan struct{})
}

// look returns the job as it is, the events from one on that are kept, the number of the next one, and what
// is closed by the next news.
func (j *job) look(from int) (form rest.Job, events []event, next int, news <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.form, j.events[max(from-j.gone, 0):], j.gone + len(j.events), j.news
}

// handleJob adds a route that begins a job. prepare runs within the request, and so may read its body; what
// it returns runs as the job.
func handleJob[I, O any](t *router, method, path string, scope Scope, summary string,
	prepare func(ctx context.Context, r *request, in *I) (func(context.Context, telling) (*O, error), error),
	parameters ...parameter) *route {
	o := &route{method: method, path: path, summary: summary, scope: scope, parameters: parameters, job: true,
		in: bodyOf[I](), out: bodyOf[O](), status: http.StatusAccepted}
	o.run = func(ctx context.Context, r *request) error {
		in := new(I)
		if o.in != nil {
			if err := r.decode(in); err != nil {
				return err
			}
		}
		work, err := prepare(ctx, r, in)
		if err != nil {
			return err
		}
		return r.begin(func(ctx context.Context, t telling) (any, error) { return work(ctx, t) })
	}
	t.add(o)
	return o
}

// begin begins a job, and answers with its place or, if the client wants that, with its events.
func (r *request) begin(work func(context.Context, telling) (any, error)) error {
	if err := r.s.begin(); err != nil {
		return err
	}
	base := context.WithoutCancel(r.Context()) // a job outlives its request
	ctx, cancel := context.WithCancelCause(base)
	_, verb, _ := strings.Cut(r.route.path, "}:")
	j := &job{cancel: cancel, access: r.access, news: make(chan struct{}),
		form: rest.Job{ID: rand.Text(), Kind: verb, State: rest.JobRunning, Database: r.PathValue("database"),
			Collection: r.PathValue("collection"), Began: time.Now().UTC()}}
	if err := r.s.jobs.add(j); err != nil {
		cancel(err)
		r.s.working.Done()
		return err
	}
	select {
	case <-r.s.ends.Done(): // Shutdown may have looked at the jobs before this one was among them
		cancel(rest.ErrClosing)
	default:
	}
	go r.s.work(ctx, j, work)
	if strings.Contains(r.Header.Get("Accept"), eventStream) {
		return r.follow(j, true)
	}
	r.w.Header().Set("Location", "/v1/"+r.PathValue("database")+"/jobs/"+j.form.ID)
	form, _, _, _ := j.look(0)
	return r.w.json(http.StatusAccepted, form)
}

// work runs a job to its end.
func (s *Server) work(ctx context.Context, j *job, work func(context.Context, telling) (any, error)) {
	defer s.working.Done()
	defer j.cancel(nil)
	var result json.RawMessage
	err := func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				s.opt.Logger.Error("panic in a job", "panic", p, "stack", string(debug.Stack()))
				err = errors.New("the server has a fault, which its log describes")
			}
		}()
		out, err := work(ctx, telling{j})
		if err == nil {
			result, err = json.Marshal(out)
		}
		return err
	}()
	s.jobs.end(j) // first: who hears the end may begin the next job
	j.mu.Lock()
	end := time.Now().UTC()
	j.form.Ended, j.form.State, j.form.Result = &end, rest.JobDone, result
	if err != nil {
		j.form.State, j.form.Error, j.form.Result = rest.JobFailed, s.problem(err), nil
		if errors.Is(context.Cause(ctx), rest.ErrClosing) {
			j.form.Error = s.problem(rest.ErrClosing)
		}
		if errors.Is(err, context.Canceled) {
			j.form.State = rest.JobCancelled
		}
	}
	j.wake()
	j.mu.Unlock()
}

func (all *jobs) add(j *job) error {
	all.mu.Lock()
	defer all.mu.Unlock()
	mine := 0
	for _, other := range all.byID {
		if other.access.Name == j.access.Name && !other.over {
			mine++
		}
	}
	if all.active >= maxJobs || j.access != everybody && mine >= maxJobs/4 {
		return fmt.Errorf("%w: %d jobs are running, %d of this token", rest.ErrOverloaded, all.active, mine)
	}
	all.active++
	all.byID[j.form.ID] = j
	return nil
}

// end keeps a job that has ended, in the place of the oldest one.
func (all *jobs) end(j *job) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.active--
	j.over = true
	if all.ended = append(all.ended, j); len(all.ended) > keptJobs {
		delete(all.byID, all.ended[0].form.ID)
		all.ended = slices.Delete(all.ended, 0, 1)
	}
}

func (all *jobs) cancelAll() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, j := range all.byID {
		j.cancel(rest.ErrClosing)
	}
}

// job returns the job that the path names, if the request may see it.
func (r *request) job() (*job, error) {
	r.s.jobs.mu.Lock()
	j := r.s.jobs.byID[r.PathValue("job")]
	r.s.jobs.mu.Unlock()
	if j == nil || j.form.Database != r.PathValue("database") || !r.access.sees(j.form.Collection) {
		return nil, fault.NotFound("job %q", r.PathValue("job"))
	}
	return j, nil
}

// registerJobs adds the routes of jobs.
func registerJobs(t *router) {
	handle(t, "GET", "/v1/{database}/jobs", Read, "List the jobs that run, and the last ones that have ended",
		func(_ context.Context, r *request, _ *none) (*rest.Jobs, error) {
			if _, err := r.database(); err != nil {
				return nil, err
			}
			r.s.jobs.mu.Lock()
			defer r.s.jobs.mu.Unlock()
			out := &rest.Jobs{Jobs: []rest.Job{}}
			for _, j := range r.s.jobs.byID {
				if form, _, _, _ := j.look(0); form.Database == r.PathValue("database") &&
					r.access.sees(form.Collection) {
					form.Result = nil
					out.Jobs = append(out.Jobs, form)
				}
			}
			slices.SortFunc(out.Jobs, func(a, b rest.Job) int { return a.Began.Compare(b.Began) })
			return out, nil
		}).forEach = true
	handle(t, "GET", "/v1/{database}/jobs/{job}", Read, "Show a job, with its result when it has ended",
		func(_ context.Context, r *request, _ *none) (*rest.Job, error) {
			j, err := r.job()
			if err != nil {
				return nil, err
			}
			form, _, _, _ := j.look(0)
			return &form, nil
		}).forEach = true
	handle(t, "DELETE", "/v1/{database}/jobs/{job}", Read, "Cancel a job, of one's own or of a lesser scope",
		func(_ context.Context, r *request, _ *none) (*rest.Job, error) {
			j, err := r.job()
			if err != nil {
				return nil, err
			}
			own := j.access.Name == r.access.Name
			if !own && (r.access.Scope < Write || j.access.Scope > r.access.Scope) {
				return nil, fmt.Errorf("%w: the token does not allow what the job does", rest.ErrForbidden)
			}
			j.cancel(context.Canceled)
			form, _, _, _ := j.look(0)
			return &form, nil
		}).forEach = true
	events := handle(t, "GET", "/v1/{database}/jobs/{job}/events", Read,
		"Follow a job: events progress, finding and end, each with JSON",
		func(context.Context, *request, *none) (*none, error) { return nil, nil })
	events.produces, events.untimed, events.status = []string{eventStream}, true, http.StatusOK
	events.forEach = true
	events.run = func(_ context.Context, r *request) error {
		j, err := r.job()
		if err != nil {
			return err
		}
		return r.follow(j, false)
	}
}

// follow writes the events of a job until it ends. The job of owns ends if the client goes away.
func (r *request) follow(j *job, owns bool) error {
	h := r.w.Header()
	h.Set("Content-Type", eventStream)
	h.Set("Cache-Control", "no-store")
	r.w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(r.w)
	send := func(name string, data any) error {
		b, err := json.Marshal(data)
		if err == nil {
			_, err = fmt.Fprintf(r.w, "event: %s\ndata: %s\n\n", name, b)
		}
		return err
	}
	from, last := 0, rest.Progress{}
	for {
		form, events, next, news := j.look(from)
		from = next
		var err error
		for _, e := range events {
			err = errors.Join(err, send(e.name, e.data))
		}
		if p := (rest.Progress{Stage: form.Stage, Done: form.Done, Total: form.Total}); p != last &&
			err == nil {
			last = p
			err = send("progress", p)
		}
		if form.State != rest.JobRunning {
			_ = send("end", form)
			_ = control.Flush()
			return nil
		}
		if err == nil {
			err = control.Flush()
		}
		if err == nil {
			select {
			case <-news:
				// Progress may come thousands of times a second.
				select {
				case <-time.After(20 * time.Millisecond):
				case <-r.Context().Done():
				}
			case <-time.After(15 * time.Second):
				_, err = fmt.Fprint(r.w, ": \n\n") // a proxy may cut a connection that is silent
			case <-r.Context().Done():
				err = r.Context().Err()
			}
		}
		if err != nil {
			if owns {
				j.cancel(errGone)
			}
			return nil
		}
	}
}
