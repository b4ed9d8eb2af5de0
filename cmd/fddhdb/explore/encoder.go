package explore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db"
)

// An Encoder is a program that makes vectors of text. It reads the text from standard
// input and prints a vector; see parseVector. No shell runs it, and the text is no
// argument.
type Encoder struct {
	Modality string
	Command  []string // the program and its arguments

	// Lines says that the program is started once and stays running: it reads a text a
	// line and prints a vector a line. Otherwise it is started for each text, which
	// ends with its input.
	Lines bool

	// Timeout is the limit for one text; 0 means 30 s. A program with Lines has five
	// minutes for its first text, or Timeout if that is longer, as it may have to load
	// a model.
	Timeout time.Duration
}

// startTimeout is the limit for the first text of a program that stays running.
const startTimeout = 5 * time.Minute

const (
	maxVectorBytes = 32 << 20 // limit of the output for a text
	keptVectors    = 64       // number of texts whose vectors are kept
	keptStderr     = 2 << 10  // bytes of stderr that are kept
	endGrace       = 2 * time.Second
)

// An encoder encodes one text at a time. It keeps the latest vectors, as sliders of the
// page ask for the same text again.
type encoder struct {
	Encoder
	turn *room         // of one place, held while a text is encoded
	quit chan struct{} // closed when the server closes

	mu    sync.Mutex        // guards kept and order
	kept  map[string]vector // vectors by text
	order []string          // of kept, the oldest first

	lines *lines // the running program; nil if there is none; guarded by turn
}

func newEncoder(e Encoder) *encoder {
	if e.Timeout == 0 {
		e.Timeout = 30 * time.Second
	}
	return &encoder{Encoder: e, turn: newRoom(1), quit: make(chan struct{}), kept: map[string]vector{}}
}

// longest returns the time that a text may take.
func (e *encoder) longest() time.Duration {
	if e.Lines {
		return max(e.Timeout, startTimeout)
	}
	return e.Timeout
}

// vector returns the vector of a text.
func (e *encoder) vector(ctx context.Context, text string) (vector, error) {
	if x, ok := e.known(text); ok {
		return x, nil
	}
	if err := e.turn.enter(ctx); err != nil {
		return vector{}, err
	}
	if x, ok := e.known(text); ok { // the request before had the same text
		e.turn.leave()
		return x, nil
	}
	if e.Lines {
		return e.askLines(ctx, text)
	}
	defer e.turn.leave()
	return e.once(ctx, text)
}

func (e *encoder) known(text string) (vector, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x, ok := e.kept[text]
	return x, ok
}

// take parses the output for a text, and keeps the vector.
func (e *encoder) take(text string, printed []byte) (vector, error) {
	x, err := parseVector(printed)
	if err != nil {
		return vector{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.kept[text]; !ok {
		e.kept[text] = x
		e.order = append(e.order, text)
	}
	if len(e.order) > keptVectors {
		delete(e.kept, e.order[0])
		e.order = e.order[1:]
	}
	return x, nil
}

// failed returns the error of the program, with its own complaint.
func (e *encoder) failed(err error, complaint string) error {
	var said *encoderSays
	if errors.As(err, &said) {
		return statusErrorf(http.StatusUnprocessableEntity, "the encoder of %s: %w", e.Modality, err)
	}
	if complaint = strings.TrimSpace(complaint); complaint != "" {
		return statusErrorf(http.StatusBadGateway, "the encoder of %s, %s: %w: %s", e.Modality, e.Command[0], err, complaint)
	}
	return statusErrorf(http.StatusBadGateway, "the encoder of %s, %s: %w", e.Modality, e.Command[0], err)
}

// once starts the program for one text.
func (e *encoder) once(ctx context.Context, text string) (vector, error) {
	limited, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	go func() {
		select {
		case <-e.quit:
			cancel()
		case <-limited.Done():
		}
	}()
	cmd := exec.CommandContext(limited, e.Command[0], e.Command[1:]...)
	stdout, stderr := &limitedBuffer{most: maxVectorBytes}, &tail{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), stdout, stderr
	cmd.WaitDelay = endGrace // processes that it has started may hold its output open
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return vector{}, ctx.Err()
	case errors.Is(limited.Err(), context.Canceled):
		return vector{}, db.ErrClosed
	case limited.Err() != nil:
		return vector{}, e.late(e.Timeout, stderr.String())
	case err != nil:
		return vector{}, e.failed(err, stderr.String())
	}
	x, err := e.take(text, stdout.Bytes())
	if err != nil {
		return vector{}, e.failed(err, stderr.String())
	}
	return x, nil
}

func (e *encoder) late(after time.Duration, complaint string) error {
	err := e.failed(fmt.Errorf("no vector after %v", after), complaint)
	return &statusError{http.StatusGatewayTimeout, err}
}

// close ends the running program.
func (e *encoder) close() error {
	close(e.quit)
	e.turn.places <- struct{}{} // forever
	if e.lines == nil {
		return nil
	}
	return e.lines.end()
}

// limitedBuffer keeps the first most bytes.
type limitedBuffer struct {
	bytes.Buffer
	most int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, fmt.Errorf("more than %d MiB printed for a text", b.most>>20)
	}
	return b.Buffer.Write(p)
}

// tail keeps the end of its input.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-keptStderr):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.b), "�")
}
