package explore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/db"
)

// lines is a program that stays running: a line in, a line out. The holder of the
// encoder's turn uses it.
type lines struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	printed chan printed  // lines of its output; closed at the end of it
	stop    chan struct{} // closed to end read
	stderr  *tail
}

// printed is a line. more says that further output followed at once.
type printed struct {
	line []byte
	more bool
}

// start starts the program.
func (e *encoder) start() (*lines, error) {
	l := &lines{
		cmd:     exec.Command(e.Command[0], e.Command[1:]...),
		printed: make(chan printed),
		stop:    make(chan struct{}),
		stderr:  &tail{},
	}
	l.cmd.Stderr = l.stderr
	l.cmd.WaitDelay = endGrace
	stdin, err := l.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := l.cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, stdin.Close())
	}
	l.stdin = stdin
	if err := l.cmd.Start(); err != nil {
		return nil, err // Start closes both
	}
	go l.read(stdout)
	return l, nil
}

// read passes lines on, one at a time.
func (l *lines) read(stdout io.Reader) {
	defer close(l.printed)
	r := bufio.NewReader(stdout)
	for {
		var line []byte
		for {
			part, err := r.ReadSlice('\n')
			line = append(line, part...)
			if err == nil {
				break
			}
			if err != bufio.ErrBufferFull || len(line) > maxVectorBytes {
				return
			}
		}
		select {
		case l.printed <- printed{line, r.Buffered() > 0}:
		case <-l.stop:
			return
		}
	}
}

// end closes the input of the program, and kills it if it does not end.
func (l *lines) end() error {
	close(l.stop)
	err := l.stdin.Close()
	ended := make(chan struct{})
	kill := time.AfterFunc(endGrace, func() {
		select {
		case <-ended:
		default:
			_ = l.cmd.Process.Kill() // it may have ended by itself
		}
	})
	_ = l.cmd.Wait() // its exit code does not matter any more
	close(ended)
	kill.Stop()
	return err
}

// askLines encodes a text with the running program. It passes the turn on to a
// goroutine that waits for the answer, even if the client has gone: the next line of
// the program would otherwise be taken for the next answer.
func (e *encoder) askLines(ctx context.Context, text string) (vector, error) {
	type answer struct {
		x   vector
		err error
	}
	done := make(chan answer, 1)
	go func() {
		defer e.turn.leave()
		x, err := e.exchange(text)
		done <- answer{x, err}
	}()
	select {
	case a := <-done:
		return a.x, a.err
	case <-ctx.Done():
		return vector{}, ctx.Err()
	}
}

// exchange must have the turn. After an error it ends the program, and the next text
// starts it again: its late output would be taken for the next answer. A program that
// reports an error in its line goes on.
func (e *encoder) exchange(text string) (x vector, err error) {
	patience := e.Timeout
	if e.lines == nil {
		patience = e.longest()
		if e.lines, err = e.start(); err != nil {
			return vector{}, e.failed(err, "")
		}
	}
	l := e.lines
	line, err := e.lineFor(l, text, patience)
	if err == nil {
		var said *encoderSays
		switch x, err = e.take(text, line); {
		case err == nil:
			return x, nil
		case errors.As(err, &said):
			return vector{}, e.failed(err, "")
		}
		err = e.failed(err, l.complaint())
	}
	e.lines = nil
	_ = l.end() // the first error matters
	return vector{}, err
}

// lineFor writes a line and returns the answer.
func (e *encoder) lineFor(l *lines, text string, patience time.Duration) ([]byte, error) {
	select {
	case p, going := <-l.printed:
		if going {
			return nil, e.failed(fmt.Errorf("it printed %.40q without being asked", p.line), l.complaint())
		}
	default:
	}
	written := make(chan error, 1)
	go func() {
		_, err := io.WriteString(l.stdin, strings.NewReplacer("\r", " ", "\n", " ").Replace(text)+"\n")
		written <- err
	}()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		select {
		case p, going := <-l.printed:
			switch {
			case !going:
				return nil, e.failed(errors.New("it ended, or printed too much"), l.complaint())
			case p.more: // it cannot be of the next text, and it is unclear which line is the vector
				return nil, e.failed(fmt.Errorf("it printed more than a line for a text, the first %.40q", p.line), l.complaint())
			}
			return p.line, nil
		case err := <-written:
			if err != nil {
				return nil, e.failed(errors.New("it ended"), l.complaint())
			}
			written = nil
		case <-timeout.C:
			return nil, e.late(patience, l.stderr.String())
		case <-e.quit:
			return nil, db.ErrClosed
		}
	}
}

// complaint ends a program and waits for it, so that its stderr is complete. It returns
// that.
func (l *lines) complaint() string {
	_ = l.cmd.Process.Kill() // it may print nothing more and still be running
	_ = l.cmd.Wait()
	return l.stderr.String()
}
