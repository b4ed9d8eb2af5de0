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

// An Encoder is a program that makes vectors of text. It gets the text on standard input
// and prints a vector, see parseVector. No shell is between, and the text is no argument.
type Encoder struct {
	Modality string
	Command  []string // the program and its arguments

	// Lines: the program is started once and goes on, with a text a line in, and a vector
	// a line out. Otherwise it is started for each text, which ends where its input does.
	Lines bool

	// Timeout is for one text; 0 means 30 s. A program that goes on has five minutes for
	// its first one, unless Timeout is longer: it may have to load a model.
	Timeout time.Duration
}

// startTimeout is for the first text of a program that goes on.
const startTimeout = 5 * time.Minute

const (
	maxVectorBytes = 32 << 20 // of what a program may print for a text
	keptVectors    = 64       // texts whose vectors are kept
	keptStderr     = 2 << 10  // bytes of what it complains about
	endGrace       = 2 * time.Second
)

// An encoder encodes one text at a time, and keeps the latest vectors: sliders ask for
// the same again.
type encoder struct {
	Encoder
	turn *room         // of one place, taken while a text is encoded
	quit chan struct{} // closed when the server is

	mu    sync.Mutex
	kept  map[string]vector
	order []string // of kept, the oldest first

	lines *lines // of a program that goes on; nil while none does. Guarded by turn.
}

func newEncoder(e Encoder) *encoder {
	if e.Timeout == 0 {
		e.Timeout = 30 * time.Second
	}
	return &encoder{Encoder: e, turn: newRoom(1), quit: make(chan struct{}), kept: map[string]vector{}}
}

// longest returns how long a text may take.
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

// take reads what the program has printed for a text, and keeps it.
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

// failed says that the program did not do what it should, and what it says itself.
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
	cmd.WaitDelay = endGrace // what it has started may hold its output open
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

// close ends what runs.
func (e *encoder) close() error {
	close(e.quit)
	e.turn.places <- struct{}{} // for good
	if e.lines == nil {
		return nil
	}
	return e.lines.end()
}

// limitedBuffer keeps so much and no more.
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

// tail keeps the end of what is written to it.
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
