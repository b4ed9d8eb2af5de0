// Package names is the only place that defines the names of a cluster in NATS: streams, buckets and subjects.
// Permissions use these names, see docs/SCALE.md.
package names

import (
	"fmt"
	"regexp"

	"github.com/fddhdb/fddhdb/db"
)

// valid matches names of clusters and nodes: they become parts of subjects, streams and folders.
var valid = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// Check refuses an invalid name of a cluster or a node.
func Check(what, name string) error {
	if !valid.MatchString(name) {
		return fmt.Errorf("%w: name %.80q of a %s: it has to be of 1 to 32 letters, digits, - and _",
			db.ErrInvalid, name, what)
	}
	return nil
}

type Cluster string

// Stream is the name of the log of a shard.
func (c Cluster) Stream(shard int) string { return fmt.Sprintf("FDDHDB_%s_%d", c, shard) }

// Log is the subject on which a shard takes writes of items, and Control that for all other operations. They
// are one log. Permission to publish there is permission for the operations.
func (c Cluster) Log(shard int) string { return fmt.Sprintf("fddhdb.%s.log.%d", c, shard) }

// Logs is a pattern of Log, of all shards.
func (c Cluster) Logs() string { return fmt.Sprintf("fddhdb.%s.log.*", c) }

func (c Cluster) Control(shard int) string { return fmt.Sprintf("fddhdb.%s.control.%d", c, shard) }

// Skips is the subject of the messages, in the same log, that name messages to pass over.
func (c Cluster) Skips(shard int) string { return fmt.Sprintf("fddhdb.%s.skip.%d", c, shard) }

// Ticks are the subjects on which the server announces new messages in the log of a shard. of is * for all of
// them, or the kind of messages: what stands before the shard in Log, Control or Skips.
func (c Cluster) Ticks(of string, shard int) string {
	return fmt.Sprintf("fddhdb.%s.tick.%s.%d", c, of, shard)
}

// All is a pattern of Log, Control and Skips.
func (c Cluster) All(shard int) string { return fmt.Sprintf("fddhdb.%s.*.%d", c, shard) }

// Read is the subject on which a node answers requests.
func (c Cluster) Read(node string) string { return fmt.Sprintf("fddhdb.%s.read.%s", c, node) }

// Admin is the subject on which a node takes orders, for example to make a backup.
func (c Cluster) Admin(node string) string { return fmt.Sprintf("fddhdb.%s.admin.%s", c, node) }

// Changed is the subject of the message that the plan has changed.
func (c Cluster) Changed() string { return fmt.Sprintf("fddhdb.%s.changed", c) }

// Nodes is the subject on which all nodes report their status.
func (c Cluster) Nodes() string { return fmt.Sprintf("fddhdb.%s.nodes", c) }

// Bucket is the name of the key bucket, which holds the plan.
func (c Cluster) Bucket() string { return "FDDHDB_" + string(c) }
