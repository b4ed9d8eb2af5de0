package vectors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
)

// A side is a process that has built its index, and searches when it is told to.
type side struct {
	program string
	setting string // name of what points differ in
	points  []*point
	argv    []string
	stderr  io.Writer

	built built
	cmd   *exec.Cmd // nil: not started
	in    io.WriteCloser
	out   io.ReadCloser
	says  *json.Decoder // reads out
}

// A point is what a side reaches with one value of its setting.
type point struct {
	value  float64
	found  float64   // share of the nearest items
	micros []float64 // of all timed searches, ascending once all rounds are over
}

// median returns the median of the times, of which there is at least one.
func (p *point) median() float64 { return p.micros[len(p.micros)/2] }

// built is what a process says when it can search.
type built struct {
	Version string  // of a library that go.mod does not name
	Threads int     // that have built
	Import  float64 // seconds
	Build   float64 // seconds
	Memory  int64   // bytes
	Disk    int64   // bytes
}

// A pass is the answer of a process to a value of its setting: how long each query took,
// and the items that it found.
type pass struct {
	Nanos []int64
	Found [][]int
}

func newSide(program, setting string, values []float64, argv ...string) *side {
	s := &side{program: program, setting: setting, argv: argv}
	for _, v := range values {
		s.points = append(s.points, &point{value: v})
	}
	return s
}

// start returns when the process has built its index.
func (s *side) start(ctx context.Context) (err error) {
	cmd := exec.CommandContext(ctx, s.argv[0], s.argv[1:]...)
	cmd.Stderr = s.stderr
	if s.in, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if s.out, err = cmd.StdoutPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd, s.says = cmd, json.NewDecoder(s.out)
	return s.answer(&s.built)
}

// answer reads what the process says next.
func (s *side) answer(v any) error {
	err := s.says.Decode(v)
	if err == nil {
		return nil
	}
	if ended := s.stop(); ended != nil && errors.Is(err, io.EOF) {
		err = ended
	}
	return fmt.Errorf("%s: %w", s.program, err)
}

// stop ends the process: by the end of its input, or where it still writes by that of its
// output.
func (s *side) stop() error {
	if s.cmd == nil {
		return nil
	}
	cmd := s.cmd
	s.cmd = nil
	s.in.Close()
	s.out.Close()
	return cmd.Wait()
}

// round searches with all queries by each value.
func (s *side) round(data *set, timed bool) error {
	for _, p := range s.points {
		if _, err := fmt.Fprintln(s.in, p.value); err != nil {
			return fmt.Errorf("%s: %w", s.program, err)
		}
		var got pass
		if err := s.answer(&got); err != nil {
			return err
		}
		queries := len(data.nearest)
		if len(got.Nanos) != queries || len(got.Found) != queries {
			return fmt.Errorf("%s: %d answers and %d times to %d queries", s.program, len(got.Found), len(got.Nanos), queries)
		}
		found := 0.0
		for q, answer := range got.Found {
			r, err := data.recall(q, answer)
			if err != nil {
				return fmt.Errorf("%s: %w", s.program, err)
			}
			found += r
			if timed {
				p.micros = append(p.micros, float64(got.Nanos[q])/1e3)
			}
		}
		p.found = found / float64(queries)
	}
	return nil
}
