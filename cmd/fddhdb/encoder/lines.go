package encoder

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/db"
)

var errTooMuch = fmt.Errorf("it printed more than %d MiB for an input", maxVectorBytes>>20)

// A runner is the maker of programs.
type runner struct {
	*Program
	quit    <-chan struct{} // closed when the encoder closes
	running *lines          // nil if there is none
}

// close implements maker.
func (e *runner) close() {
	if e.running != nil {
		_ = e.running.stop(endGrace) // how it ends does not matter any more
	}
}

// lines is a program that stays running: for each line that it reads it prints a line. Only the
// goroutine that has the turn of the encoder uses it.
type lines struct {
	*process
	printed chan line     // closed at the end of its output, and after one with an error
	given   chan struct{} // closed when nobody wants its output any more
}

// A line is a line of output. more says that further output followed at once.
type line struct {
	text []byte
	more bool
	err  error // errTooMuch, without a line
}

func (e *runner) startLines() (*lines, error) {
	p, err := e.start()
	if err != nil {
		return nil, err
	}
	l := &lines{process: p, printed: make(chan line), given: make(chan struct{})}
	go l.read()
	return l, nil
}

// read passes lines on, one at a time.
func (l *lines) read() {
	defer close(l.printed)
	r := bufio.NewReader(l.stdout)
	for {
		var next line
		for next.err == nil {
			part, err := r.ReadSlice('\n')
			next.text = append(next.text, part...)
			if err == nil {
				break
			}
			if err != bufio.ErrBufferFull {
				return // what follows the last end of a line is no answer
			}
			if len(next.text) > maxVectorBytes {
				next = line{err: errTooMuch}
			}
		}
		next.more = r.Buffered() > 0
		select {
		case l.printed <- next:
		case <-l.given:
			return
		}
		if next.err != nil {
			return
		}
	}
}

func (l *lines) stop(grace time.Duration) error {
	close(l.given)
	return l.process.stop(grace)
}

// answers implements maker, with the running program, which it starts if there is none. After an error it
// ends the program, and the next input starts it again: its late output would be taken for the next answer. A
// program that refuses an input in its line goes on, and so does one whose vector has not the dimensions of
// this modality. If these are the last inputs it ends the program.
func (e *runner) answers(_ context.Context, dim int, inputs []string, last bool) ([]answer, error) {
	all := make([]answer, 0, len(inputs))
	patience := e.Timeout
	batch := inputs
	if e.running == nil && len(inputs) > 0 {
		l, err := e.startLines()
		if err != nil {
			return nil, e.failed(Failed, err, "")
		}
		e.running, patience = l, e.Longest()
		if !last {
			// The first input goes alone: what the program prints besides one vector is then
			// seen. Otherwise it is seen at the end.
			batch = inputs[:1]
		}
	}
	for len(batch) > 0 {
		some, err := e.ask(dim, batch, patience, last)
		if err != nil {
			e.running = nil
			return nil, err
		}
		all = append(all, some...)
		batch, patience = inputs[len(all):], e.Timeout
	}
	if l := e.running; l != nil && last {
		e.running = nil
		if err := e.end(l); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// end ends a program that has answered to all of its input, which has ended.
func (e *runner) end(l *lines) error {
	timeout := time.NewTimer(endGrace)
	defer timeout.Stop()
	select {
	case p, going := <-l.printed:
		if going {
			_ = l.stop(0) // this error matters
			return e.failed(Failed, fmt.Errorf("it printed more than a line for an input, the last %.40q",
				p.text), l.stderr.String())
		}
		_ = l.stop(endGrace) // it has answered, however it ends
	case <-timeout.C:
		_ = l.stop(0)
	case <-e.quit:
		_ = l.stop(0)
		return db.ErrClosed
	}
	return nil
}

// ask sends inputs to the running program and returns its answers. After an error the program is stopped.
// last ends the input of the program.
func (e *runner) ask(dim int, inputs []string, patience time.Duration,
	last bool) (all []answer, err error) {
	l := e.running
	fail := func(reason Reason, grace time.Duration, format string, args ...any) ([]answer, error) {
		_ = l.stop(grace) // the first error matters
		return nil, e.failed(reason, fmt.Errorf(format, args...), l.stderr.String())
	}
	ended := func() ([]answer, error) {
		err := l.stop(endGrace)
		if err == nil {
			err = errors.New("without an error")
		}
		return nil, e.failed(Failed, fmt.Errorf("it ended: %w", err), l.stderr.String())
	}
	select {
	case p, going := <-l.printed:
		if going {
			return fail(Failed, 0, "it printed %.40q without being asked", p.text)
		}
		return ended()
	default:
	}
	written := make(chan error, 1)
	go func() {
		w := bufio.NewWriter(l.stdin)
		for _, input := range inputs {
			if _, err := w.WriteString(oneLine.Replace(input) + "\n"); err != nil {
				break // as Flush says
			}
		}
		err := w.Flush()
		if last && err == nil {
			err = l.stdin.Close()
		}
		written <- err
	}()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for len(all) < len(inputs) || written != nil {
		select {
		case p, going := <-l.printed:
			switch {
			case !going && len(all) == len(inputs): // it has read all, as it has answered
				return all, nil
			case !going:
				return ended()
			case p.err != nil:
				return fail(Failed, 0, "%w", p.err)
			// it is unclear which line is the vector
			case len(all) == len(inputs), len(all) == len(inputs)-1 && p.more:
				return fail(Failed, 0, "it printed more than a line for an input, the first %.40q", p.text)
			}
			x, inStep, err := parseAnswer(p.text, dim)
			if err != nil && !inStep {
				return fail(Failed, 0, "%w", err)
			}
			a := answer{Vector: x}
			if err != nil {
				a.err = e.failed(Failed, err, l.stderr.String())
			}
			all = append(all, a)
			timeout.Reset(e.Timeout)
		case err := <-written:
			if err != nil {
				return ended()
			}
			written = nil
		case <-timeout.C:
			if last {
				return fail(Late, 0, "no vector after %v", patience)
			}
			return fail(Late, 0, "no vector after %v (it has to flush its output after each line)", patience)
		case <-e.quit:
			_ = l.stop(0)
			return nil, db.ErrClosed
		}
		if len(all) > 0 {
			patience = e.Timeout
		}
	}
	return all, nil
}

// oneLine makes one line of an input.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ")
