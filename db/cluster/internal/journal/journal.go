// Package journal is the log of a shard: a JetStream stream on three servers, which sync each message before
// they acknowledge it.
//
// Once Append has returned a sequence, the message is in the log and stays. The server drops a second message
// with the same ID for as long as it remembers IDs; package apply handles later ones. Readers read batches of
// messages from the servers that hold them, and have no state in NATS that could be lost.
package journal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
	"github.com/fddhdb/fddhdb/db/cluster/internal/names"
	"github.com/fddhdb/fddhdb/db/cluster/internal/retry"
)

// ErrFull says that a log has no room for a message.
var ErrFull = errors.New("fddhdb: the log is full")

// ReplyHeader names the subject to which replicas send the outcome of a message's operation.
const ReplyHeader = "Fddhdb-Reply"

// duplicates is how long a server remembers IDs.
const duplicates = 2 * time.Minute

// Config has the settings of a new log.
type Config struct {
	Replicas int   // servers that keep it
	MaxBytes int64 // limit; at the limit appends are refused until the log is trimmed
	FirstSeq uint64
}

// A Kind of messages has a subject of its own, so that permissions can tell them apart.
type Kind int

const (
	Writes  Kind = iota // of items
	Control             // all other operations
	Skips               // name messages that replicas pass over
)

// A Journal is the log of one shard. Its methods may be called from any goroutine.
type Journal struct {
	js       jetstream.JetStream
	nc       *nats.Conn
	stream   string
	subjects [3]string // by Kind
	all      string    // pattern of these
	tick     string    // pattern of the announcements, which all becomes
	ticks    string
	name     string                           // for errors
	handle   atomic.Pointer[jetstream.Stream] // spares At a request; nil: Info has not been called
	told     atomic.Uint64                    // the last sequence reported by a tick or Info
	wake     chan struct{}                    // makes Follow read at once
}

// Wake makes Follow read at once, for somebody who knows of a message.
func (j *Journal) Wake() {
	select {
	case j.wake <- struct{}{}:
	default: // it will
	}
}

// Told returns the last sequence that the servers have reported; 0: none yet.
func (j *Journal) Told() uint64 { return j.told.Load() }

// New returns the log of a shard. Create must have made it.
func New(js jetstream.JetStream, cluster names.Cluster, shard int) *Journal {
	subjects := [...]string{cluster.Log(shard), cluster.Control(shard), cluster.Skips(shard)}
	return &Journal{subjects: subjects, js: js, nc: js.Conn(), stream: cluster.Stream(shard),
		all: cluster.All(shard), tick: cluster.Ticks("*", shard),
		ticks: cluster.Ticks("{{wildcard(1)}}", shard), name: fmt.Sprintf("log of shard %d", shard),
		wake: make(chan struct{}, 1)}
}

// Create makes the log. An existing empty log is left from an interrupted creation: Create makes it again. An
// existing log with messages is db.ErrExists: only the user knows their value.
func (j *Journal) Create(ctx context.Context, c Config) error {
	return j.in(retry.Do(ctx, func(ctx context.Context) error { return j.make(ctx, c) }))
}

func (j *Journal) make(ctx context.Context, c Config) error {
	s, err := j.create(ctx, c)
	same := err == nil // new, or existing with these settings: JetStream does not tell
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		s, err = j.js.Stream(ctx, j.stream)
	}
	if err != nil {
		return err
	}
	info, err := s.Info(ctx)
	switch {
	case err != nil:
		return err
	case info.State.Msgs > 0:
		return fmt.Errorf("%w: stream %s has %d messages, of a cluster of that name whose plan is lost: remove it if nobody needs them", db.ErrExists, j.stream, info.State.Msgs)
	case same && info.State.LastSeq+1 == max(c.FirstSeq, 1):
		return nil
	}
	if err := j.js.DeleteStream(ctx, j.stream); err != nil {
		return err
	}
	_, err = j.create(ctx, c)
	return err
}

func (j *Journal) create(ctx context.Context, c Config) (jetstream.Stream, error) {
	s, err := j.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: j.stream, Subjects: j.subjects[:], Replicas: c.Replicas, Storage: jetstream.FileStorage,
		MaxBytes: c.MaxBytes, Discard: jetstream.DiscardNew, Duplicates: duplicates, FirstSeq: c.FirstSeq,
		AllowDirect: true, DenyDelete: true,
		// with it servers of 2.15.2 wrote to a compressed block as to any other, and lost the log
		Compression: jetstream.NoCompression,
		RePublish:   &jetstream.RePublish{Source: j.all, Destination: j.ticks, HeadersOnly: true},
	})
	var refused *jetstream.APIError
	if errors.As(err, &refused) && retry.NoRoom(refused) {
		err = fmt.Errorf("%w: the servers set %d bytes aside for each log: give them more (max_file_store), or make smaller logs", err, c.MaxBytes)
	}
	return s, err
}

// in adds the log's name to an error.
func (j *Journal) in(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", j.name, err)
}

// Bounds of the time for one try of Append, and of the pause between tries.
const (
	tryFor  = 500 * time.Millisecond
	tryWait = 20 * time.Millisecond
	mostFor = 4 * time.Second
)

// Codes of JetStream's errors.
const (
	// a message was not stored: the stream has no room, or another reason
	errStoreFailed jetstream.ErrorCode = 10077
	errInProcess   jetstream.ErrorCode = 10158 // a message with the same ID is being stored
)

// Append appends the message with that ID, and returns its sequence once it is durable. It retries until the
// context ends, because a log has no leader for some seconds after the loss of a server. tries counts the
// tries that may have reached the log: with an error, 0 means that the message is not in the log.
func (j *Journal) Append(ctx context.Context, id string, kind Kind, data []byte,
	reply string) (seq uint64, tries int, err error) {
	m := &nats.Msg{Subject: j.subjects[kind], Data: data, Header: nats.Header{}}
	if reply != "" {
		m.Header.Set(ReplyHeader, reply)
	}
	seq, tries, err = j.send(ctx, m, id)
	return seq, tries, j.in(err)
}

// send publishes a message until the log has it. The id makes it stored once.
func (j *Journal) send(ctx context.Context, m *nats.Msg, id string) (seq uint64, tries int, err error) {
	js := j.js
	for wait, most := tryWait, tryFor; ; {
		if js.Conn().IsClosed() {
			return 0, tries, nats.ErrConnectionClosed
		}
		said := js.Conn().LastError()
		var ack *jetstream.PubAck
		try, cancel := context.WithTimeout(ctx, most)
		ack, err = js.PublishMsg(try, m, jetstream.WithMsgID(id), jetstream.WithExpectStream(j.stream),
			jetstream.WithRetryAttempts(0))
		cancel()
		var refused *jetstream.APIError
		switch {
		case err == nil:
			return ack.Sequence, tries + 1, nil
		// no server received it
		case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		// one of our tries, which is counted
		case errors.As(err, &refused) && refused.ErrorCode == errInProcess:
		case errors.As(err, &refused) && refused.ErrorCode == errStoreFailed &&
			strings.Contains(refused.Description, "maximum bytes"):
			return 0, tries, ErrFull
		case errors.As(err, &refused) && refused.Code < 500:
			return 0, tries, err
		case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrPermissionViolation):
			return 0, tries, err
		case js.Conn().LastError() != said && Forbidden(js.Conn(), m.Subject): // caused by this try
			return 0, tries, fmt.Errorf("%w: publish to %s", nats.ErrPermissionViolation, m.Subject)
		default:
			tries++
		}
		select {
		case <-ctx.Done():
			return 0, tries, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(wait):
		}
		wait, most = min(2*wait, 500*time.Millisecond), min(2*most, mostFor)
	}
}

// Forbidden reports whether the latest error of a connection forbids it to publish to a subject. Servers do
// not report that in an answer.
func Forbidden(nc *nats.Conn, subject string) bool {
	err := nc.LastError()
	return errors.Is(err, nats.ErrPermissionViolation) &&
		strings.Contains(err.Error(), strconv.Quote(subject))
}

// Info has the extent of a log.
type Info struct {
	First, Last uint64 // sequences; First is Last+1 if the log is empty
	Bytes       int64
	Leader      string // name of the leading server
}

// Info returns the extent of the log.
func (j *Journal) Info(ctx context.Context) (Info, error) {
	s, err := j.js.Stream(ctx, j.stream)
	if err != nil {
		return Info{}, j.in(err)
	}
	j.handle.Store(&s)
	i := s.CachedInfo()
	info := Info{First: i.State.FirstSeq, Last: i.State.LastSeq, Bytes: int64(i.State.Bytes)}
	if info.First == 0 {
		info.First = info.Last + 1
	}
	if info.Last > j.told.Load() {
		j.told.Store(info.Last)
	}
	if i.Cluster != nil {
		info.Leader = i.Cluster.Leader
	}
	return info, nil
}

// Trim removes the messages before a sequence, which is in the log or the next one.
func (j *Journal) Trim(ctx context.Context, before uint64) error {
	info, err := j.Info(ctx)
	if err != nil {
		return err
	}
	if before > info.Last { // purging past the end would make a gap
		before = info.Last
	}
	if before <= info.First {
		return nil
	}
	s, err := j.js.Stream(ctx, j.stream)
	if err != nil {
		return j.in(err)
	}
	return j.in(s.Purge(ctx, jetstream.WithPurgeSequence(before)))
}

// At returns one message, or ErrNone if the log has none with that sequence.
func (j *Journal) At(ctx context.Context, seq uint64) (apply.Message, error) {
	s := j.handle.Load()
	if s == nil {
		found, err := j.js.Stream(ctx, j.stream)
		if err != nil {
			return apply.Message{}, j.in(err)
		}
		s = &found
	}
	m, err := (*s).GetMsg(ctx, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return apply.Message{}, j.in(ErrNone)
	}
	if err != nil {
		return apply.Message{}, j.in(err)
	}
	return apply.Message{Seq: m.Sequence, Data: m.Data, Time: m.Time}, nil
}

// ErrNone says that the log lacks a message.
var ErrNone = errors.New("no such message")

// A Read is a message with the subject for its outcome.
type Read struct {
	apply.Message
	Reply string
}

// Bounds of one read.
const (
	readMost  = 1000
	readBytes = 8 << 20
	readFor   = time.Second
	idle      = 250 * time.Millisecond // first pause between reads without a tick; each one is twice as long
	mostIdle  = 30 * time.Second       // bounds the pause
)

// Follow calls f with the messages from a sequence on, in batches and in order, until the context ends or f
// returns an error, which Follow returns. If a server does not answer, Follow retries without calling f.
//
// The servers announce each message by a tick. A tick may be lost: Follow reads without one when the
// connection comes back, when Wake is called, and now and then.
func (j *Journal) Follow(ctx context.Context, from uint64, f func([]Read) error) error {
	sub, err := j.nc.Subscribe(j.tick, func(m *nats.Msg) {
		if seq, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64); err == nil {
			j.told.Store(seq)
		}
		j.Wake()
	})
	if err != nil {
		return j.in(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	connected := j.nc.StatusChanged(nats.CONNECTED)
	defer j.nc.RemoveStatusListener(connected)
	for wait := time.Duration(0); ; {
		some, err := j.read(ctx, from)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if len(some) > 0 {
			if err := f(some); err != nil {
				return err
			}
			from, wait = some[len(some)-1].Seq+1, 0
			continue
		}
		// No message yet. If a tick has just announced one, the server that was asked may lag: ask again at
		// once.
		silent := err != nil && !errors.Is(err, jetstreamext.ErrNoMessages)
		if wait = min(2*wait, mostIdle); silent || wait == 0 {
			wait = idle
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-j.wake:
			wait = time.Millisecond / 2
		case <-connected:
			wait = 0
		case <-time.After(wait):
		}
	}
}

// silence is how long All waits for a server with the next message.
const silence = 10 * time.Second

// All calls f with all messages that the log has now, in batches and in order. An unreadable message is an
// error, unless it has been trimmed meanwhile.
func (j *Journal) All(ctx context.Context, f func([]Read) error) error {
	info, err := j.Info(ctx)
	if err != nil {
		return err
	}
	last, heard := info.Last, time.Now()
	for from := info.First; from <= last; {
		some, err := j.read(ctx, from)
		if len(some) == 0 || some[0].Seq != from {
			now, ierr := j.Info(ctx)
			switch {
			case ierr != nil:
				return ierr
			case now.First > from: // trimmed
				from = now.First
				continue
			case len(some) > 0:
				return j.in(fmt.Errorf("%w: a server has message %d and not %d before it", ErrNone,
					some[0].Seq, from))
			case time.Since(heard) > silence:
				return j.in(fmt.Errorf("message %d of %d cannot be read: %w", from, last, err))
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(idle):
			}
			continue
		}
		for i := range some { // keep the consecutive ones
			if some[i].Seq != from+uint64(i) {
				some = some[:i]
				break
			}
		}
		if err := f(some); err != nil {
			return err
		}
		from, heard = some[len(some)-1].Seq+1, time.Now()
	}
	return nil
}

// Skips returns all messages on the subject of skips.
func (j *Journal) Skips(ctx context.Context) (some []Read, err error) {
	some, err = j.read(ctx, 1, jetstreamext.GetBatchSubject(j.subjects[Skips]))
	if errors.Is(err, jetstreamext.ErrNoMessages) {
		return nil, nil
	}
	return some, j.in(err)
}

// read returns some of the messages from a sequence on that a server has.
func (j *Journal) read(ctx context.Context, from uint64, of ...jetstreamext.GetBatchOpt) (some []Read,
	err error) {
	ctx, cancel := context.WithTimeout(ctx, readFor)
	defer cancel()
	of = append(of, jetstreamext.GetBatchSeq(from), jetstreamext.GetBatchMaxBytes(readBytes))
	all, err := jetstreamext.GetBatch(ctx, j.js, j.stream, readMost, of...)
	if err != nil {
		return nil, err
	}
	for m, err := range all {
		if err != nil {
			return some, err
		}
		some = append(some, Read{Message: apply.Message{Seq: m.Sequence, Data: m.Data, Time: m.Time,
			Control: m.Subject != j.subjects[Writes]}, Reply: m.Header.Get(ReplyHeader)})
	}
	return some, nil
}
