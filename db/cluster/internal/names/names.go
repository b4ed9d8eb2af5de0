// Package names is the only place that defines the names of a cluster in NATS: streams, buckets and subjects.
// Permissions use these names, see docs/SCALE.md.
package names

import (
	"encoding/base64"
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

// Log is the subject of the log of a shard. Permission to publish there is permission to write.
func (c Cluster) Log(shard int) string { return fmt.Sprintf("fddhdb.%s.log.%d", c, shard) }

// Tick is the subject on which the server announces new messages in the log of a shard.
func (c Cluster) Tick(shard int) string { return fmt.Sprintf("fddhdb.%s.tick.%d", c, shard) }

// Read is the subject on which a node answers requests.
func (c Cluster) Read(node string) string { return fmt.Sprintf("fddhdb.%s.read.%s", c, node) }

// Admin is the subject on which a node takes orders, for example to make a backup.
func (c Cluster) Admin(node string) string { return fmt.Sprintf("fddhdb.%s.admin.%s", c, node) }

// Changed is the subject of the message that the plan has changed.
func (c Cluster) Changed() string { return fmt.Sprintf("fddhdb.%s.changed", c) }

// Nodes is the subject on which all nodes report their status.
func (c Cluster) Nodes() string { return fmt.Sprintf("fddhdb.%s.nodes", c) }

// Bucket is the name of the key bucket, which holds the plan, and of the object bucket.
func (c Cluster) Bucket() string { return "FDDHDB_" + string(c) }

// Objects is the stream of the bucket of objects. ADR-20 of NATS defines it and its subjects.
func (c Cluster) Objects() string { return "OBJ_" + c.Bucket() }

// ObjectMeta is the subject, in the stream Objects, of the descriptions of all objects: name, size and
// number.
func (c Cluster) ObjectMeta() string { return "$O." + c.Bucket() + ".M.>" }

// ObjectChunks is the subject, in the stream Objects, of the bytes of the object whose number is nuid.
func (c Cluster) ObjectChunks(nuid string) string { return "$O." + c.Bucket() + ".C." + nuid }

// ObjectRecord is the subject, in the stream Objects, of the description of the object with that name.
func (c Cluster) ObjectRecord(name string) string {
	return "$O." + c.Bucket() + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
}
