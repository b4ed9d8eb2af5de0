package cluster

import (
	"fmt"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// parts hold what is too large for a message: answers that a client fetches, and orders that it sends.
type parts struct {
	mu    sync.Mutex
	all   map[wire.ID]*whole
	bytes int // of all
}

// A whole is forgotten when nobody has asked for it for some time.
type whole struct {
	data []byte
	end  *time.Timer
}

const (
	partFor   = 30 * time.Second // how long a whole is kept after the last message about it
	mostParts = 512 << 20        // bytes kept at a time
	partHead  = 4 << 10          // bytes of a message beside a part
)

// first returns an answer as it is if it fits a message of most bytes, otherwise its first part.
func (p *parts) first(answer []byte, most int) ([]byte, error) {
	if len(answer) <= most {
		return answer, nil
	}
	id := wire.NewID()
	if err := p.add(id, 0, answer); err != nil {
		return nil, err
	}
	return p.part(id, 0, most).Encode()
}

// add adds bytes to a whole, which may have them already.
func (p *parts) add(id wire.ID, offset int, some []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.all[id]
	if w == nil {
		w = &whole{end: time.AfterFunc(partFor, func() { p.take(id) })}
		if p.all == nil {
			p.all = map[wire.ID]*whole{}
		}
		p.all[id] = w
	}
	w.end.Reset(partFor)
	switch more := offset + len(some) - len(w.data); {
	case offset < 0 || offset > len(w.data):
		return fmt.Errorf("%w: the beginning is not there any more", wire.ErrAnswer)
	case more <= 0:
		return nil
	case p.bytes+more > mostParts:
		return fmt.Errorf("%w: too many large answers and orders at a time", wire.ErrAnswer)
	default:
		p.bytes += more
		w.data = append(w.data[:offset], some...)
		return nil
	}
}

// take returns a whole, and forgets it.
func (p *parts) take(id wire.ID) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.all[id]
	if w == nil {
		return nil
	}
	w.end.Stop()
	p.bytes -= len(w.data)
	delete(p.all, id)
	return w.data
}

// part returns the part of an answer from an offset on. With the last part it forgets the answer.
func (p *parts) part(id wire.ID, offset, most int) *wire.Answer {
	p.mu.Lock()
	var data []byte
	if w := p.all[id]; w != nil {
		data = w.data
		w.end.Reset(partFor)
	}
	p.mu.Unlock()
	if offset < 0 || offset >= len(data) {
		return &wire.Answer{Fault: wire.FaultOf(
			fmt.Errorf("%w: the rest of an answer that is not there any more", wire.ErrAnswer))}
	}
	end := min(len(data), offset+most-partHead)
	if end == len(data) {
		p.take(id)
	}
	return &wire.Answer{Part: &wire.Part{ID: id, Total: len(data), Data: data[offset:end]}}
}
