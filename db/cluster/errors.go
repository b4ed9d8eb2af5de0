package cluster

import (
	"errors"

	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/route"
)

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
	ErrClientCertificate = errors.New("fddhdb: the NATS server asks for a certificate of this client, and takes none or not this one")
)

// A ShardError says that no replica of a shard answered a request, and why.
type ShardError = route.ShardError
