package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// maxEvent bounds an event of a job, in bytes.
const maxEvent = 256 << 20

// work begins a job, follows it to its end and decodes its result into an O. The job ends if the context
// does, or this program. If the server closes, which takes back what the job has begun, the job begins once
// more, as soon as there is a server; after a connection that fails it does only if it may be carried out
// twice. If heard has got an event already, work does not begin again, as the event would come twice.
func work[O any](ctx context.Context, d *Database, c call, in any, progress event.Progress,
	heard func(name string, data []byte) error) (*O, error) {
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, fault.Invalid("%w", err)
		}
		c.body = b
	}
	c.method, c.accept, c.stream = http.MethodPost, "text/event-stream", true
	var told bool
	hear := func(name string, data []byte) error {
		told = true
		if heard == nil {
			return nil
		}
		return heard(name, data)
	}
	for tries := 0; ; tries++ {
		result, err := d.follow(ctx, c, progress, hear)
		again := errors.Is(err, rest.ErrClosing) || c.twice && errors.Is(err, rest.ErrUnknown)
		if again && !told && d.patience >= 0 && tries < maxTries && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return nil, err
		}
		out := new(O)
		if err := json.Unmarshal(result, out); err != nil {
			return nil, fmt.Errorf("fddhdb: the result of a job cannot be read: %w", err)
		}
		return out, nil
	}
}

// maxTries bounds how often a job begins once more.
const maxTries = 20

// follow sends a request that begins a job, and returns the result of the job.
func (d *Database) follow(ctx context.Context, c call, progress event.Progress,
	heard func(name string, data []byte) error) (json.RawMessage, error) {
	r, err := d.send(ctx, c)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	scan := bufio.NewScanner(r.Body)
	scan.Buffer(make([]byte, 64<<10), maxEvent)
	name := ""
	for scan.Scan() {
		line := scan.Bytes()
		if rest, is := bytes.CutPrefix(line, []byte("event: ")); is {
			name = string(rest)
			continue
		}
		data, is := bytes.CutPrefix(line, []byte("data: "))
		if !is {
			continue
		}
		switch name {
		case "progress":
			var p rest.Progress
			if err := json.Unmarshal(data, &p); err == nil && progress != nil {
				progress(p.Stage, p.Done, p.Total)
			}
		case "end":
			var j rest.Job
			if err := json.Unmarshal(data, &j); err != nil {
				return nil, fmt.Errorf("fddhdb: the end of a job cannot be read: %w", err)
			}
			if j.Error != nil {
				return nil, j.Error.Err()
			}
			return j.Result, nil
		default:
			if err := heard(name, data); err != nil {
				return nil, err
			}
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	err = scan.Err()
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return nil, fmt.Errorf("%w: %s has ended while it worked: look at the database, and do it again: %w",
		rest.ErrUnknown, cmp.Or(d.place, "the server"), err)
}
