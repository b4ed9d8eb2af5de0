package rows

import (
	"context"
	"errors"
	"io"
	"maps"

	"github.com/fddhdb/fddhdb/db"
)

// Rows go in runs from the goroutine that reads the files to the one that stores them, so that both work at
// the same time and seldom wait for each other.
const (
	runRows  = 128
	runBytes = 4 << 20 // bytes of vectors with which a run is complete
)

// A readRow is a row that has been read, or the reason why it could not be.
type readRow struct {
	item    db.Item
	err     error
	repeats bool      // an earlier row has its key
	numbers []float32 // memory of its dense vectors and of the values of sparse ones
	indices []uint32
}

// set copies an item, as its reader reuses the memory.
func (r *readRow) set(item *db.Item, err error) {
	own := r.item
	vectors, sparse, fields := own.Vectors, own.Sparse, own.Fields
	if vectors == nil {
		vectors, sparse = map[string][]float32{}, map[string]db.Sparse{}
	}
	if fields == nil {
		fields = map[string]any{}
	}
	clear(vectors)
	clear(sparse)
	clear(fields)
	maps.Copy(fields, item.Fields)
	r.item, r.err = *item, err
	// nil stays nil: a merge then keeps the stored value. An empty slice gets memory of the row: item's
	// own has room that the reader reuses for other rows.
	r.item.Labels = again(own.Labels, item.Labels)
	r.item.Code, r.item.Payload = again(own.Code, item.Code), again(own.Payload, item.Payload)
	if r.item.Fields != nil {
		r.item.Fields = fields
	}
	r.numbers, r.indices = r.numbers[:0], r.indices[:0]
	for name, x := range item.Vectors {
		vectors[name] = r.keep(x)
	}
	for name, x := range item.Sparse {
		from := len(r.indices)
		r.indices = append(r.indices, x.Index...)
		sparse[name] = db.Sparse{Index: r.indices[from:len(r.indices):len(r.indices)], Value: r.keep(x.Value)}
	}
	r.item.Vectors, r.item.Sparse = vectors, sparse
}

// again returns a copy of x in the memory of own.
func again[T any](own, x []T) []T {
	if x == nil {
		return nil
	}
	if own == nil {
		own = []T{}
	}
	return append(own[:0], x...)
}

func (r *readRow) keep(x []float32) []float32 {
	from := len(r.numbers)
	r.numbers = append(r.numbers, x...)
	return r.numbers[from:len(r.numbers):len(r.numbers)]
}

// A rowRun is a run of rows, and the error that ended the reading after them, if any.
type rowRun struct {
	rows []readRow
	n    int
	err  error
}

// next returns the row to fill next.
func (run *rowRun) next() *readRow {
	if run.n == len(run.rows) {
		run.rows = append(run.rows, readRow{})
	}
	run.n++
	return &run.rows[run.n-1]
}

// Each calls f with the rows from number from on, in order, while a goroutine reads ahead: with an item,
// valid until f returns, or with the *Error of the row. It returns when that goroutine has ended.
func (in Together) Each(ctx context.Context, from int, f func(item *db.Item, bad error) error) error {
	return in.each(ctx, from, func(r *readRow) error { return f(&r.item, r.err) })
}

func (in Together) each(ctx context.Context, from int, f func(*readRow) error) error {
	ctx, cancel := context.WithCancel(ctx)
	full, empty := make(chan *rowRun, 2), make(chan *rowRun, 3)
	for range cap(empty) {
		empty <- &rowRun{}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(full)
		in.readRuns(ctx, from, full, empty)
	}()
	defer func() { // the caller must not close the files before
		cancel()
		<-ended
	}()
	for run := range full {
		for i := range run.n {
			if err := f(&run.rows[i]); err != nil {
				return err
			}
		}
		if run.err != nil {
			return run.err
		}
		empty <- run
	}
	return ctx.Err()
}

// readRuns reads rows until there are no more or the context ends.
func (in Together) readRuns(ctx context.Context, from int, full chan<- *rowRun, empty <-chan *rowRun) {
	item := NewItem()
	rows := in.Rows()
	err := in.leaveOut(ctx, from)
	for row := from; ; {
		var run *rowRun
		select {
		case run = <-empty:
		case <-ctx.Done():
			return
		}
		run.n, run.err = 0, err
		for bytes := 0; run.err == nil && ctx.Err() == nil && run.n < runRows && bytes < runBytes; row++ {
			if rows >= 0 && row >= rows {
				run.err = io.EOF
				break
			}
			err := in.read(&item)
			var bad *Error
			if err != nil && !errors.As(err, &bad) {
				run.err = err
				break
			}
			r := run.next()
			r.set(&item, err)
			r.repeats = in.repeats()
			bytes += 4 * len(r.numbers)
		}
		ends := run.err != nil
		if rows < 0 && errors.Is(run.err, io.EOF) || run.err == io.EOF {
			run.err = nil
		}
		select {
		case full <- run:
		case <-ctx.Done():
			return
		}
		if ends {
			return
		}
	}
}

// leaveOut skips the first rows of all files.
func (in Together) leaveOut(ctx context.Context, rows int) error {
	item := NewItem()
	for _, s := range in {
		if v, ok := s.(skipper); ok {
			if err := v.Skip(ctx, rows); err != nil {
				return err
			}
			continue
		}
		for i := range rows {
			if i%1000 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			err := s.Next(&item)
			var bad *Error
			if err != nil && !errors.As(err, &bad) {
				return err
			}
		}
	}
	return nil
}
