// Package api is what a program can do with a database, wherever the database is: one interface for a folder
// that this process owns (Folder), for a server (db/client) and for a cluster (db/cluster).
//
//	d, err := attach.Open(ctx, "photos.db", attach.Options{}) // a folder, or the process that has it open
//	c, err := d.Collection(ctx, "main")
//	r, err := c.Search(ctx, db.Query{From: "text", Vector: words, To: "image"})
//
// A program that needs one folder alone, and what only the owner of a folder can do (snapshots, marks by
// prefix, checkpoints), uses package db itself.
//
// Items, queries and errors have the types of package db: errors.Is(err, db.ErrConflict) holds for a conflict
// in a folder, on a server and in a cluster. A method that a place does not have returns
// errors.ErrUnsupported. All methods are safe for concurrent use, except the methods of a Batch. Methods do
// not keep their arguments; the caller owns the results.
package api

import (
	"context"
	"io"
	"iter"
	"strings"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/report"
)

// A Database is an open database.
type Database interface {
	// Collections returns the names of the collections, in order.
	Collections(ctx context.Context) ([]string, error)

	// Collection returns a handle on a collection. If there is none, the error is a db.ErrNotFound.
	Collection(ctx context.Context, name string) (Collection, error)

	CreateCollection(ctx context.Context, name string, schema db.Schema) (Collection, error)
	DropCollection(ctx context.Context, name string) error

	// NewBatch returns an empty batch.
	NewBatch() Batch

	// Mark returns the bytes that a batch has kept under a name, see db.Batch.Mark.
	Mark(ctx context.Context, name string) ([]byte, error)

	Stats(ctx context.Context) (*db.Stats, error)

	// WaitForIndex waits until all codes are in memory, see db.DB.WaitForIndex.
	WaitForIndex(ctx context.Context) error

	Compact(ctx context.Context) error
	Verify(ctx context.Context, opt db.VerifyOptions,
		found func(report.Finding) error) (*report.Verification, error)

	// Backup makes a backup at the place that a URL names, as seen from where the database is.
	Backup(ctx context.Context, url string, opt db.BackupOptions) (*backup.Manifest, error)

	// Close frees what the handle holds. The database of a server goes on.
	Close() error
}

// A Collection is a handle on a collection. db.Collection describes the methods.
type Collection interface {
	Name() string

	// ID is the number of the collection, which no other one gets; 0 in a cluster.
	ID() uint32

	// InSpace returns a handle that sees the codes of a space, and of a revision of it; 0 is the active one.
	InSpace(ctx context.Context, space db.Space, revision uint32) (Collection, error)

	Schema(ctx context.Context) (db.Schema, error)
	Alter(ctx context.Context, a db.Alteration) error
	RenameLabel(ctx context.Context, old, name string) error

	Put(ctx context.Context, item *db.Item) (key string, err error)
	PutIf(ctx context.Context, item, old *db.Item) error
	Merge(ctx context.Context, item *db.Item) (key string, err error)
	Delete(ctx context.Context, keys ...string) (int, error)
	DeleteWhere(ctx context.Context, where string, args ...any) (int, error)

	Get(ctx context.Context, key string) (*db.Item, error)
	Keys(ctx context.Context, prefix string) iter.Seq2[string, error]
	Items(ctx context.Context, where string, args ...any) iter.Seq2[*db.Item, error]
	Sample(ctx context.Context, n int, seed uint64, where string, args ...any) iter.Seq2[*db.Item, error]
	Count(ctx context.Context, where string, args ...any) (int, error)
	Labels(ctx context.Context) ([]string, error)
	Facets(ctx context.Context, q db.FacetQuery) (*db.Facets, error)

	Search(ctx context.Context, q db.Query) (*db.Result, error)

	// SearchRadius returns the first K items within a radius, and the number of all.
	SearchRadius(ctx context.Context, q db.Query, radius int) (*db.Result, error)

	Pairs(ctx context.Context, q db.PairQuery) iter.Seq2[db.Pair, error]
	Groups(ctx context.Context, q db.GroupQuery) iter.Seq2[db.Group, error]

	Evaluate(ctx context.Context, e db.Evaluation) ([]report.Retrieval, error)

	// Encode returns the code that an item would get without labels, or of labels alone; EncodeQuery the code
	// of a query.
	Encode(ctx context.Context, item *db.Item) (code []byte, err error)
	EncodeQuery(ctx context.Context, q db.Query) (code []byte, err error)

	Stats(ctx context.Context, also ...db.Figure) (*db.CollectionStats, error)

	Train(ctx context.Context, opt db.TrainOptions) (*report.Training, error)
	Update(ctx context.Context, opt db.UpdateOptions) (*report.Update, error)
	Reindex(ctx context.Context, opt db.ReindexOptions) (*report.Reindexing, error)
	Spaces(ctx context.Context) ([]report.SpaceInfo, error)
	Activate(ctx context.Context, space db.Space) error
	Rollback(ctx context.Context) (db.Space, error)
	RestoreRevision(ctx context.Context, space db.Space, revision uint32) (*report.Update, error)
	DropSpace(ctx context.Context, space db.Space) error
	ExportModel(ctx context.Context, w io.Writer) error
	ImportModel(ctx context.Context, r io.Reader, opt db.ImportModelOptions) (*report.Training, error)

	IndexVectors(ctx context.Context, opt db.IndexOptions) (*report.VectorIndex, error)
	DropVectorIndex(ctx context.Context, modality string) error
}

// A Batch collects changes that are made together, see db.Batch. A cluster can make changes of one shard
// together only.
type Batch interface {
	Put(c Collection, item *db.Item) error
	Merge(c Collection, item *db.Item) error
	Delete(c Collection, key string) error
	Expect(c Collection, key string, old *db.Item) error
	RegisterLabels(c Collection, labels []string) error
	Mark(name string, value []byte) error
	Len() int
	Full() bool
	Commit(ctx context.Context) error

	// Keys returns the keys of the items that were put and merged, after Commit.
	Keys() []string
}

// CodeOfWords returns the code that the model of a collection has learned for words as labels, all of them
// one label or each word one; nil if there is none. So words find pictures that have no label without any
// encoder.
func CodeOfWords(ctx context.Context, c Collection, words string) []byte {
	for _, labels := range [][]string{{words}, strings.Fields(words)} {
		if code, err := c.Encode(ctx, &db.Item{Labels: labels}); err == nil {
			return code
		}
	}
	return nil
}
