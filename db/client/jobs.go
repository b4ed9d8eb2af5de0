package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// maxEvent bounds an event of a job, in bytes.
const maxEvent = 256 << 20

// work begins a job, follows it to its end and decodes its result into an O. The job ends if the context
// does, or this program.
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
			out := new(O)
			if err := json.Unmarshal(j.Result, out); err != nil {
				return nil, fmt.Errorf("fddhdb: the result of a job cannot be read: %w", err)
			}
			return out, nil
		default:
			if heard != nil {
				if err := heard(name, data); err != nil {
					return nil, err
				}
			}
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("%w: the connection to the server has failed while a job ran: %w", rest.ErrUnknown,
		errOr(scan.Err()))
}

func errOr(err error) error {
	if err == nil {
		return fmt.Errorf("it was closed")
	}
	return err
}
