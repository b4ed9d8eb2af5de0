package cluster

import (
	"errors"

	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/route"
)

// Errors to test for with errors.Is. Those of package db mean here what they mean there: db.ErrNotFound,
// db.ErrConflict, db.ErrInvalid, db.ErrNoModel and so on.
var (
	// ErrUnknown says that nobody knows whether a write has happened: it may still. Client.Outcome tells
	// later. A write without a condition may be made again.
	ErrUnknown = errors.New("fddhdb: it is not known whether this was written")

	// ErrLogFull says that the log of a shard has no room: nothing was written. A backup, and trimming the
	// log behind it, make room.
	ErrLogFull = journal.ErrFull

	// ErrMoved says that the answers of some shards are of another model than those of others, or that a
	// cursor is: a model is just being changed. Ask again.
	ErrMoved = errors.New("fddhdb: the shards are not at one model")

	// ErrServerCertificate and ErrClientCertificate are errors of ConnectNATS. That of credentials which the
	// servers refuse is nats.ErrAuthorization.
	ErrServerCertificate = errors.New("fddhdb: the certificate of the NATS server is not trusted")
	ErrClientCertificate = errors.New("fddhdb: the NATS server asks for a certificate of this client, and takes none or not this one")
)

// A ShardError says that no replica of a shard has answered a request, and why.
type ShardError = route.ShardError
