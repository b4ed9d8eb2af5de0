package encoder

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/fddhdb/fddhdb/db"
)

// A Program is a command that makes vectors of texts or files. Its first word says of what kind it is: see
// Kind. A program in the narrow sense is started with the first input and stays running: it reads an input
// a line and prints a vector a line (see ParseVector), in the same order. It may be sent several lines
// before it answers.
type Program struct {
	Modality string          // of the vectors, for errors
	Input    db.EncoderInput // "": text
	Command  []string        // the program and its arguments, or the words of another kind
	Dir      string          // the folder that it runs in; "": the current one

	// Timeout is the limit for one input; 0 means 30 s. The first input has five minutes, or
	// Timeout if that is longer, as the program may have to load a model.
	Timeout time.Duration

	// Fingerprint is what Identify has returned for the program. Before its first input it is made again,
	// and it is an *Error with Changed if it is another one. nil: any program.
	Fingerprint []byte
}

// Limits of programs.
const (
	defaultTimeout = 30 * time.Second
	startTimeout   = 5 * time.Minute // for the first input
	maxVectorBytes = 32 << 20        // output for an input, and the answer to a request
	keptStderr     = 2 << 10         // bytes of stderr that are kept
	endGrace       = 2 * time.Second // to end when there is no more input
)

// Longest returns the time that one input may take.
func (p *Program) Longest() time.Duration { return max(p.Timeout, startTimeout) }

// An Encoder runs a Program when it is needed.
type Encoder struct {
	Program
	turn chan struct{}      // has an element while somebody uses the program
	ends context.Context    // ends with Close
	end  context.CancelFunc // of ends

	// Both belong to the goroutine that has the turn.
	making maker // nil before the first input
	known  bool  // the fingerprint has been compared
}

// New returns an encoder that has not started its program yet. The caller closes it.
func New(p Program) *Encoder {
	if p.Timeout == 0 {
		p.Timeout = defaultTimeout
	}
	e := &Encoder{Program: p, turn: make(chan struct{}, 1)}
	e.ends, e.end = context.WithCancel(context.Background())
	return e
}

// Encode returns a vector of dim dimensions for each input; some may be dense and some sparse. If the program
// fails, or refuses an input, it is an *Error. If the context ends first, Encode returns its error at once:
// a request ends with it, while a program goes on with the answer. After Close it is db.ErrClosed.
func (e *Encoder) Encode(ctx context.Context, dim int, inputs []string) ([]Vector, error) {
	return e.vectors(ctx, dim, inputs, false)
}

// Run returns the vectors of the inputs by a program that is started for them, and ends with them.
// It is Encode, and more forgiving: the input of the program ends behind the last one, so
// it need not flush its output after each.
func Run(ctx context.Context, p Program, dim int, inputs []string) ([]Vector, error) {
	e := New(p)
	defer e.Close()
	return e.vectors(ctx, dim, inputs, true)
}

// Each encodes many inputs, and goes on if the program refuses some. refused[i] is the reason why input i has
// no vector, nil if it has one.
func (e *Encoder) Each(ctx context.Context, dim int, inputs []string) (all []Vector, refused []error,
	err error) {
	answers, err := e.encode(ctx, dim, inputs, false)
	if err != nil {
		return nil, nil, err
	}
	all, refused = make([]Vector, len(inputs)), make([]error, len(inputs))
	for i, a := range answers {
		switch {
		case a.err == nil:
			all[i] = a.Vector
		case a.err.Reason == Refused:
			refused[i] = a.err
		default:
			return nil, nil, a.err
		}
	}
	return all, refused, nil
}

// encode returns an answer for each input; last says that there are no inputs after these.
func (e *Encoder) encode(ctx context.Context, dim int, inputs []string, last bool) ([]answer, error) {
	var made []answer // belongs to the goroutine that has the turn
	err := e.do(ctx, func(ctx context.Context) (err error) {
		made, err = e.identified(ctx, dim, inputs, last)
		return err
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}

// do calls f in its turn. If the context ends first, f goes on in the background and keeps the turn: the next
// lines of a program would otherwise be taken for the next answers. The context of f ends with Close, too.
func (e *Encoder) do(ctx context.Context, f func(ctx context.Context) error) error {
	if e.ends.Err() != nil {
		return db.ErrClosed
	}
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-e.ends.Done():
		return db.ErrClosed
	}
	done := make(chan error, 1)
	go func() {
		defer e.leave()
		both, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(e.ends, func() { cancel(db.ErrClosed) })()
		done <- f(both)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *Encoder) leave() { <-e.turn }

// answers returns an answer to each input. It has the turn.
func (e *Encoder) answers(ctx context.Context, dim int, inputs []string, last bool) ([]answer, error) {
	if e.making == nil {
		var err error
		if e.making, err = e.kind().start(&e.Program, e.ends.Done()); err != nil {
			return nil, e.failed(Failed, err, "")
		}
	}
	return e.making.answers(ctx, dim, inputs, last)
}

// vectors is Encode, with the last of encode. The first error names its input if there are several.
func (e *Encoder) vectors(ctx context.Context, dim int, inputs []string, last bool) ([]Vector, error) {
	answers, err := e.encode(ctx, dim, inputs, last)
	if err != nil {
		return nil, err
	}
	all := make([]Vector, 0, len(inputs))
	for i, a := range answers {
		if a.err != nil && len(inputs) > 1 {
			named := *a.err
			named.Err = fmt.Errorf("for %.80q: %w", inputs[i], named.Err)
			a.err = &named
		}
		if a.err != nil {
			return nil, a.err
		}
		all = append(all, a.Vector)
	}
	return all, nil
}

// Close ends the program. One that is encoding is killed; another one has two seconds to end by
// itself.
func (e *Encoder) Close() {
	e.end()
	e.turn <- struct{}{} // forever
	if e.making != nil {
		e.making.close()
	}
}

// A Reason says in what way a program has made no vector.
type Reason int

// Reasons of errors.
const (
	Failed  Reason = iota // it could not be started, ended, or printed something else
	Late                  // it printed nothing in time
	Refused               // it said why there is none
	Changed               // it is not the one with the fingerprint
)

// An Error says why a program has made no vector.
type Error struct {
	Modality string
	Program  string // Command[0], or the host of an address
	Reason   Reason
	Err      error
	Stderr   string // the end of what the program has written to stderr
}

func (e *Error) Error() string {
	text := "the encoder of " + e.Modality
	if e.Reason != Refused {
		text += ", " + e.Program
	}
	text += ": " + e.Err.Error()
	if e.Stderr != "" {
		text += ": " + e.Stderr
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// failed returns the error of the program, with its own complaint.
func (p *Program) failed(reason Reason, err error, complaint string) *Error {
	var said *refusal
	if errors.As(err, &said) {
		reason, complaint = Refused, ""
	}
	return &Error{Modality: p.Modality, Program: p.kind().called(p.Command), Reason: reason, Err: err,
		Stderr: complaint}
}

// A Vector is dense or sparse: one of the two is nil.
type Vector struct {
	Dense  []float32
	Sparse *db.Sparse
}

// Check compares a vector with the dimensions of its modality; 0 stands for any number of a dense vector.
func (x Vector) Check(dim int) error {
	if x.Sparse == nil {
		if len(x.Dense) != dim && (dim != 0 || len(x.Dense) == 0) {
			return fmt.Errorf("a vector of %d numbers, the modality has %d dimensions", len(x.Dense), dim)
		}
		return nil
	}
	if len(x.Sparse.Index) != len(x.Sparse.Value) {
		return fmt.Errorf("a vector of %d dimensions with %d numbers", len(x.Sparse.Index),
			len(x.Sparse.Value))
	}
	for n, i := range x.Sparse.Index {
		switch {
		case int64(i) >= int64(dim):
			return fmt.Errorf("a number of dimension %d, the modality has %d dimensions, counted from 0", i,
				dim)
		case n > 0 && i <= x.Sparse.Index[n-1]:
			return fmt.Errorf("dimension %d behind dimension %d: they have to ascend", i, x.Sparse.Index[n-1])
		}
	}
	return nil
}

// A refusal is an encoder's own reason for having no vector.
type refusal struct{ text string }

func (e *refusal) Error() string { return e.text }

// ParseVector parses the output of an encoder: a JSON array; the object {"i": [...],
// "v": [...]} of a sparse vector; numbers separated by commas or blanks; or {"error":
// "..."}.
func ParseVector(b []byte) (Vector, error) {
	b = bytes.TrimSpace(b)
	switch {
	case len(b) == 0:
		return Vector{}, errors.New("nothing where a vector was expected")
	case b[0] == '[':
		var x numbers
		if err := decode(b, &x); err != nil {
			return Vector{}, err
		}
		return Vector{Dense: x}, nil
	case b[0] == '{':
		var x struct {
			db.Sparse
			Error *string `json:"error"`
		}
		if err := decode(b, &x); err != nil {
			return Vector{}, err
		}
		if x.Error != nil {
			return Vector{}, &refusal{*x.Error}
		}
		return Vector{Sparse: &x.Sparse}, nil
	}
	x, err := parseNumbers(b)
	return Vector{Dense: x}, err
}

// parseNumbers parses numbers with commas or blanks between.
func parseNumbers(b []byte) ([]float32, error) {
	var x []float32
	for part := range bytes.SplitSeq(b, []byte(",")) {
		words := bytes.Fields(part)
		if len(words) == 0 {
			return nil, fmt.Errorf("a comma where number %d was expected", len(x))
		}
		for _, word := range words {
			v, err := strconv.ParseFloat(string(word), 32)
			if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("%.40q, number %d, where a number was expected", word, len(x))
			}
			x = append(x, float32(v))
		}
	}
	return x, nil
}

// numbers are a JSON array of numbers, or a JSON string that has one. A null, which is a 0 to package json,
// is an error: some programs write it for NaN.
type numbers []float32

// UnmarshalJSON implements json.Unmarshaler.
func (x *numbers) UnmarshalJSON(b []byte) (err error) {
	if b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		b = bytes.TrimSpace([]byte(s))
	}
	inner, opens := bytes.CutPrefix(b, []byte("["))
	inner, closes := bytes.CutSuffix(inner, []byte("]"))
	if !opens || !closes {
		return fmt.Errorf("%.40q where an array of numbers was expected", b)
	}
	*x = numbers{}
	if inner = bytes.TrimSpace(inner); len(inner) > 0 {
		*x, err = parseNumbers(inner)
	}
	return err
}

// decode reads one JSON value and nothing else.
func decode(b []byte, x any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(x); err != nil {
		return fmt.Errorf("no vector: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one vector")
	}
	return nil
}

// parseAnswer parses the output of an encoder, a vector of dim dimensions. inStep says that an error is
// about one vector, and that the program can go on.
func parseAnswer(b []byte, dim int) (x Vector, inStep bool, err error) {
	if x, err = ParseVector(b); err == nil {
		inStep, err = true, x.Check(dim)
	} else if _, refused := errors.AsType[*refusal](err); refused {
		return x, true, err
	}
	if err != nil {
		err = fmt.Errorf("it printed %w", err)
	}
	return x, inStep, err
}
