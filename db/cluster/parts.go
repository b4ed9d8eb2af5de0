package cluster

import (
	"fmt"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// parts hold answers that are too large for a message: the node answers with the first part, and the client
// asks for the rest.
type parts struct {
	mu    sync.Mutex
	all   map[wire.ID][]byte
	bytes int // total
}

const (
	partFor   = 30 * time.Second // how long the rest of an answer is kept
	mostParts = 512 << 20        // bytes kept at a time
	partHead  = 4 << 10          // bytes of a message beside a part
)

// first returns an answer as it is if it fits a message of most bytes, otherwise its first part.
func (p *parts) first(answer []byte, most int) ([]byte, error) {
	if len(answer) <= most {
		return answer, nil
	}
	most -= partHead
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes+len(answer) > mostParts {
		return nil, fmt.Errorf("%w: too many large answers at a time", wire.ErrAnswer)
	}
	id := wire.NewID()
	if p.all == nil {
		p.all = map[wire.ID][]byte{}
	}
	p.all[id] = answer
	p.bytes += len(answer)
	time.AfterFunc(partFor, func() { p.forget(id) })
	return (&wire.Answer{Part: &wire.Part{ID: id, Total: len(answer), Data: answer[:most]}}).Encode()
}

func (p *parts) forget(id wire.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes -= len(p.all[id])
	delete(p.all, id)
}

// rest returns a further part. With the last part it forgets the answer.
func (p *parts) rest(q *wire.Request, most int) *wire.Answer {
	p.mu.Lock()
	answer := p.all[q.ID]
	p.mu.Unlock()
	if q.Offset < 0 || q.Offset >= len(answer) {
		return &wire.Answer{Fault: wire.FaultOf(fmt.Errorf("%w: the rest of an answer that is not there any more", wire.ErrAnswer))}
	}
	end := min(len(answer), q.Offset+most-partHead)
	if end == len(answer) {
		p.forget(q.ID)
	}
	return &wire.Answer{Part: &wire.Part{ID: q.ID, Total: len(answer), Data: answer[q.Offset:end]}}
}
