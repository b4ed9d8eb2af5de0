package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/names"
	"github.com/fddhdb/fddhdb/db/cluster/internal/plan"
	"github.com/fddhdb/fddhdb/db/cluster/internal/retry"
	"github.com/fddhdb/fddhdb/db/cluster/internal/route"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/shard"
)

// ClientOptions are limits of a client. The zero value means the defaults.
type ClientOptions struct {
	// Timeout bounds a call whose context has no deadline; 0 means 30 seconds.
	Timeout time.Duration

	// Pending bounds the writes in flight; further writes wait. 0 means 256.
	Pending int

	// Node is a node of the cluster in this program, or nil. The client asks it first for the shards it has,
	// without a message: a search is at least 0.1 ms faster. Close the client before the node.
	Node *Node
}

// mostLarge bounds the writes of several messages that a client sends at a time.
const mostLarge = 4

// A Client writes to a cluster and searches it. It reads its own writes: a call sees all writes of calls that
// ended before it began. All methods are safe for concurrent use.
type Client struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	cluster names.Cluster
	plan    *plan.Plan
	router  *route.Router
	opts    ClientOptions
	pending chan struct{}
	large   chan struct{} // writes of several messages: they take memory
	heard   *outcomes
	logs    []*journal.Journal // by shard
	closing sync.Once

	mu   sync.Mutex
	seen []uint64 // by shard: the sequence that the client has read or written
}

// Connect connects to a cluster through a connection that the caller owns: see ConnectNATS. An unknown
// cluster is db.ErrNotFound.
func Connect(ctx context.Context, nc *nats.Conn, cluster string, o ClientOptions) (*Client, error) {
	if err := names.Check("cluster", cluster); err != nil {
		return nil, err
	}
	if nc == nil {
		return nil, fmt.Errorf("%w: no connection", db.ErrInvalid)
	}
	if o.Node != nil && o.Node.opts.Cluster != cluster {
		return nil, fmt.Errorf("%w: the node is one of cluster %s, not of %s", db.ErrInvalid,
			o.Node.opts.Cluster, cluster)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	o.Timeout, o.Pending = cmp.Or(o.Timeout, 30*time.Second), cmp.Or(o.Pending, 256)
	c := &Client{nc: nc, js: js, cluster: names.Cluster(cluster), opts: o,
		pending: make(chan struct{}, o.Pending), large: make(chan struct{}, mostLarge)}
	if err := c.open(ctx); err != nil {
		return nil, err
	}
	var local route.Local
	if o.Node != nil {
		local = here{o.Node}
	}
	if c.router, err = route.New(nc, c.cluster, c.plan, local); err != nil {
		c.plan.Close()
		return nil, err
	}
	c.seen = make([]uint64, c.Shards())
	for shard := range c.seen {
		c.logs = append(c.logs, journal.New(js, c.cluster, shard))
	}
	if c.heard, err = listen(nc); err != nil {
		c.router.Close()
		c.plan.Close()
		return nil, err
	}
	return c, nil
}

// open reads the plan. It asks again where an answer is lost, or is not complete, as while servers choose a
// leader.
func (c *Client) open(ctx context.Context) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	return retry.Do(ctx, func(ctx context.Context) (err error) {
		if c.plan, err = plan.Open(ctx, c.js, c.cluster); errors.Is(err, plan.ErrIncomplete) {
			err = fmt.Errorf("%w: %w", nats.ErrTimeout, err)
		}
		return err
	})
}

// Shards returns the number of shards. They have the numbers from 0 on.
func (c *Client) Shards() int { return c.plan.Settings.Shards }

// Close ends the client. Calls in progress may fail. The connection stays open. A second Close is
// db.ErrClosed.
func (c *Client) Close() error {
	err := db.ErrClosed
	c.closing.Do(func() {
		c.router.Close()
		c.plan.Close()
		err = c.heard.close()
	})
	return err
}

// Figures count the requests of a client since it connected.
type Figures struct {
	Requests uint64 // requests to nodes
	Hedges   uint64 // requests to a second replica because the first was slow
	Retries  uint64 // requests repeated because a node was gone or behind
	Failed   uint64 // requests that no replica answered
}

// Figures returns the figures of the client.
func (c *Client) Figures() Figures {
	f := &c.router.Figures
	return Figures{f.Requests.Load(), f.Hedges.Load(), f.Retries.Load(), f.Failed.Load()}
}

// within gives a context without a deadline the timeout of the client.
func (c *Client) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, c.opts.Timeout,
		fmt.Errorf("%w: %v, the timeout of the client", context.DeadlineExceeded, c.opts.Timeout))
}

// ConnectNATS connects to the servers of a cluster, with settings for fast failover: the connection notices
// within three seconds that its server is silent, and tries the others until one answers. After the servers
// have accepted the connection once, it keeps trying even while they refuse it, as they may while their
// configuration changes. urls has the URLs of all servers, because a server may not tell of the others.
// options are added, such as nats.UserCredentials and nats.RootCAs. A user with a name, in options or in a
// URL, gets answers on subjects that begin with "_INBOX." and that name: so permissions can give each user
// its own.
//
// Package nats encrypts the connection if the servers ask for it. The servers' configuration decides which
// users may connect, and whether they need credentials: see permissions.conf.
func ConnectNATS(urls string, options ...nats.Option) (*nats.Conn, error) {
	all := append([]nats.Option{
		nats.Name("fddhdb"), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(50*time.Millisecond, 50*time.Millisecond),
		nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2), nats.Timeout(2 * time.Second),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription,
			err error) {
			slog.Debug("nats", "error", err)
		}),
		// an unsendable message fails at once; it is not sent later, when no caller waits for it
		nats.ReconnectBufSize(-1),
	}, options...)
	if user := userOf(urls, options); names.Check("user", user) == nil {
		all = append([]nats.Option{nats.CustomInboxPrefix(nats.InboxPrefix + user)}, all...)
	}
	nc, err := nats.Connect(urls, all...)
	var untrusted *tls.CertificateVerificationError
	var remote *net.OpError
	switch {
	case errors.As(err, &untrusted):
		err = fmt.Errorf("%w: %w", ErrServerCertificate, untrusted.Err)
	case errors.Is(err, nats.ErrTLS), errors.As(err, &remote) && remote.Op == "remote error":
		// The server checks a client's certificate after the handshake. Whether its reason arrives before it
		// closes the connection is a race of microseconds.
		err = fmt.Errorf("%w: %w", ErrClientCertificate, err)
	}
	return nc, err
}

// userOf returns the name of the user that connects, or "".
func userOf(urls string, options []nats.Option) string {
	var o nats.Options
	for _, option := range options {
		_ = option(&o) // Connect reports the error
	}
	switch u, err := url.Parse(strings.Split(urls, ",")[0]); {
	case o.User != "":
		return o.User
	case o.UserInfo != nil:
		user, _ := o.UserInfo()
		return user
	case err == nil && u.User != nil:
		return u.User.Username()
	}
	return ""
}

// of returns the shard of a key.
func (c *Client) of(key string) int { return shard.Of(key, c.Shards()) }

// sees returns the sequence up to which this client has read or written the log of a shard. A replica must
// have applied that much before it answers the client.
func (c *Client) sees(shard int) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[shard]
}

// saw notes that the client has read or written a shard up to a sequence.
func (c *Client) saw(shard int, seq uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[shard] = max(c.seen[shard], seq)
}

// waitFor is how long, in milliseconds, a replica may wait to catch up with the client before another is
// asked.
const waitFor = 1000

// ask asks a replica of a shard.
func (c *Client) ask(ctx context.Context, shard int, q wire.Request) (*wire.Answer, error) {
	a, err := c.router.Ask(ctx, c.prepare(shard, &q))
	c.learn(shard, a)
	return a, err
}

// prepare completes a request to a shard.
func (c *Client) prepare(shard int, q *wire.Request) *wire.Request {
	q.Shard, q.From, q.Wait = shard, max(q.From, c.sees(shard)), waitFor
	return q
}

// learn notes how far the answering replica has applied its log.
func (c *Client) learn(shard int, a *wire.Answer) {
	if a != nil {
		c.saw(shard, a.Applied)
	}
}

// A LogStatus is the state of the log of a shard.
type LogStatus struct {
	Shard  int    `json:"shard"` // its number
	First  uint64 `json:"first"` // sequence of its first message; Last+1 if it is empty
	Last   uint64 `json:"last"`  // sequence of its last message
	Bytes  int64  `json:"bytes"`
	Leader string `json:"leader"` // name of the NATS server that takes its writes; "" if there is none now

	// Err says why the log could not be read. This is normal for some seconds while its servers choose a
	// leader.
	Err error `json:"-"`
}

// Logs returns the state of all logs, by shard. A log that cannot be read has an Err.
func (c *Client) Logs(ctx context.Context) []LogStatus {
	ctx, cancel := c.within(ctx)
	defer cancel()
	logs := make([]LogStatus, c.Shards())
	var all sync.WaitGroup
	for shard := range logs {
		all.Go(func() {
			info, err := c.logs[shard].Info(ctx)
			logs[shard] = LogStatus{Shard: shard, First: info.First, Last: info.Last, Bytes: info.Bytes,
				Leader: info.Leader, Err: err}
		})
	}
	all.Wait()
	return logs
}

// Errors to test for with errors.Is. The errors of package db keep their meaning: db.ErrNotFound,
// db.ErrConflict, db.ErrInvalid, db.ErrNoModel and so on.
var (
	// ErrUnknown says that it is unknown whether a write has happened; it may still happen. Client.Outcome
	// tells later. A write without a condition may be repeated.
	ErrUnknown = errors.New("fddhdb: it is not known whether this was written")

	// ErrLogFull says that the log of a shard has no room: nothing was written. A backup with
	// BackupOptions.Trim makes room.
	ErrLogFull = journal.ErrFull

	// ErrMoved says that shards answered by different models, or that a cursor belongs to another model: a
	// model is being replaced. Search again.
	ErrMoved = errors.New("fddhdb: the shards are not at one model")

	// ErrServerCertificate and ErrClientCertificate are errors of ConnectNATS. Credentials that the servers
	// refuse are nats.ErrAuthorization.
	ErrServerCertificate = errors.New("fddhdb: the certificate of the NATS server is not trusted")
	ErrClientCertificate = errors.New(
		"fddhdb: the NATS server asks for a certificate of this client, and takes none or not this one")
)

// A ShardError says that no replica of a shard answered a request, and why.
type ShardError = route.ShardError
