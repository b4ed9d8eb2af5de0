package encoder

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/fddhdb/fddhdb/db"
)

// onceEach starts the program for each input.
func (e *Encoder) onceEach(ctx context.Context, dim int, inputs []string) ([]Vector, error) {
	all := make([]Vector, len(inputs))
	for i, input := range inputs {
		x, err := e.once(ctx, dim, input)
		if err != nil {
			return nil, err
		}
		all[i] = x
	}
	return all, nil
}

// once starts the program for one input.
func (e *Encoder) once(ctx context.Context, dim int, input string) (x Vector, err error) {
	p, err := e.start()
	if err != nil {
		return x, e.failed(Failed, err, "")
	}
	go func() {
		_, _ = io.WriteString(p.stdin, input) // a program need not read it
		_ = p.stdin.Close()
	}()
	type output struct {
		b   []byte
		err error
	}
	printed := make(chan output, 1)
	go func() {
		b, err := io.ReadAll(io.LimitReader(p.stdout, maxVectorBytes+1))
		printed <- output{b, err}
	}()
	timeout := time.NewTimer(e.Timeout)
	defer timeout.Stop()
	select {
	case out := <-printed:
		if len(out.b) > maxVectorBytes {
			p.stop(0)
			return x, e.failed(Failed, errTooMuch, p.stderr.String())
		}
		err = p.stop(endGrace)
		if err == nil {
			err = out.err
		}
		if err == nil {
			x, _, err = parseAnswer(out.b, dim)
		}
		if err != nil {
			return Vector{}, e.failed(Failed, err, p.stderr.String())
		}
		return x, nil
	case <-timeout.C:
		p.stop(0)
		return x, e.failed(Late, fmt.Errorf("no vector after %v", e.Timeout), p.stderr.String())
	case <-ctx.Done():
		p.stop(0)
		return x, ctx.Err()
	case <-e.quit:
		p.stop(0)
		return x, db.ErrClosed
	}
}
