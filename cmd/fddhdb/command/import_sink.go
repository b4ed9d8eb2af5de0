package command

import (
	"context"
	"errors"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// stagedRows is the number of rows from which on items are staged on disk. Then an
// import takes little memory and goes on after an interruption. db does not store fewer
// as tables.
const stagedRows = 8192

// stagedBytes is the size of vectors and codes from which on items are staged, whatever
// their number.
const stagedBytes = 64 << 20

// skipCommitBytes is the approximate size of a commit of --merge --on-error skip.
const skipCommitBytes = 64 << 20

// An importSink takes the items of an import.
type importSink interface {
	// register gives ids to labels, before anything is put.
	register(labels []string) error

	// put takes an item. An item that gives ErrInvalid is left out; after a call of
	// skip others may follow.
	put(item *db.Item) error

	// skip records that a row is left out.
	skip(why string) error

	commit(ctx context.Context) error

	// failed ends the sink after an error, and returns the error with advice.
	failed(err error) error
}

// sink returns the sink for the items.
func (l *loader) sink(ctx context.Context, d *db.DB, c *db.Collection) (importSink, error) {
	rows := l.Rows()
	switch {
	case l.o.dryRun:
		return &checkSink{batchSink{l: l, d: d, c: c, ctx: ctx, b: d.NewBatch()}}, nil
	case l.o.merge || rows >= 0 && rows < stagedRows && l.leastBytes() < stagedBytes:
		s := &batchSink{l: l, d: d, c: c, ctx: ctx, b: d.NewBatch()}
		if !l.o.skip {
			return s, s.checkSize(l.leastBytes())
		}
		return s, nil
	}
	return l.newStagedSink(ctx, c)
}

// A batchSink holds the items in memory. With --on-error skip it stores them in several
// commits.
type batchSink struct {
	l       *loader
	d       *db.DB
	c       *db.Collection
	ctx     context.Context
	b       *db.Batch
	pending int // bytes in b
}

func (s *batchSink) register(labels []string) error { return s.b.RegisterLabels(s.c, labels) }
func (s *batchSink) skip(string) error              { return nil }

func (s *batchSink) add(b *db.Batch, item *db.Item) error {
	if s.l.o.merge {
		return b.Merge(s.c, item)
	}
	return b.Put(s.c, item)
}

func (s *batchSink) put(item *db.Item) error {
	if s.l.o.skip { // a batch is lost after a bad item
		if err := s.add(s.d.NewBatch(), item); err != nil {
			return err
		}
	}
	if err := s.add(s.b, item); err != nil {
		return err
	}
	s.pending++
	switch {
	case s.b.Bytes() <= skipCommitBytes:
	case s.l.o.skip:
		return s.commit(s.ctx)
	default:
		return s.checkSize(int64(s.b.Bytes()))
	}
	return nil
}

// checkSize refuses items that are too large for one commit.
func (s *batchSink) checkSize(bytes int64) error {
	limit := int64(db.MaxBulkBytes)
	if s.l.o.merge {
		limit = db.MaxBatchBytes
	}
	if bytes <= limit {
		return nil
	}
	return exit.Failedf("the items take %s, more than one commit can hold (%s), and an import with --merge is one commit: use --on-error skip, which commits in parts, or split the files",
		term.Size(bytes), term.Size(limit))
}

func (s *batchSink) commit(ctx context.Context) error {
	if err := s.b.Commit(ctx); err != nil {
		return err
	}
	s.l.items += s.pending
	s.b, s.pending = s.d.NewBatch(), 0
	return nil
}

func (s *batchSink) failed(err error) error {
	if s.l.items > 0 && !s.l.o.init { // --init removes the collection that it has created
		return exit.Wrap(err, "%s are stored already", term.Plural(s.l.items, "item", "items"))
	}
	return err
}

// A checkSink only checks the items.
type checkSink struct{ batchSink }

func (s *checkSink) put(item *db.Item) error {
	if s.pending%1024 == 0 {
		s.b = s.d.NewBatch()
	}
	err := s.add(s.b, item)
	if err != nil {
		s.b = s.d.NewBatch()
		return err
	}
	s.pending++
	return nil
}

func (s *checkSink) commit(context.Context) error {
	s.l.items = s.pending
	return nil
}

// A stagedSink stages the items on disk; see db.Import.
type stagedSink struct {
	l  *loader
	im *db.Import
}

func (l *loader) newStagedSink(ctx context.Context, c *db.Collection) (importSink, error) {
	opt := db.ImportOptions{
		Source: l.source, Bytes: l.leastBytes(), Restart: l.o.restart, InParts: l.o.skip,
		Skipped: l.skipped.Add, Progress: l.bar.Report,
	}
	if opt.Source == "" {
		opt.Source, opt.Restart = "unknown", true
	}
	im, err := c.NewImport(ctx, opt)
	if err != nil {
		return nil, err
	}
	l.from, l.before = im.Rows(), im.Items()
	if l.from > 0 {
		of := ""
		if rows := l.Rows(); rows >= 0 {
			of = " of " + term.Thousands(rows)
		}
		l.warnf("going on at row %s%s, where this import was interrupted (--restart begins anew)", term.Thousands(l.from), of)
	}
	return &stagedSink{l, im}, nil
}

func (s *stagedSink) register(labels []string) error {
	if s.done() {
		return nil
	}
	return s.im.RegisterLabels(labels)
}

func (s *stagedSink) put(item *db.Item) error { return s.im.Put(item) }
func (s *stagedSink) skip(why string) error   { return s.im.Skip(why) }

// done reports whether all rows are staged.
func (s *stagedSink) done() bool { return s.l.Rows() >= 0 && s.im.Rows() == s.l.Rows() }

func (s *stagedSink) commit(ctx context.Context) error {
	n := s.im.Items()
	if err := s.im.Commit(ctx); err != nil {
		return err
	}
	s.l.items = n
	return nil
}

// failed keeps the staged items if the same command can go on with them. It drops them
// if the files must be changed first.
func (s *stagedSink) failed(err error) error {
	var bad *exit.Failure
	if errors.As(err, &bad) || errors.Is(err, db.ErrInvalid) || s.l.source == "" {
		return errors.Join(err, s.im.Discard())
	}
	rows := s.im.Rows()
	if cerr := s.im.Close(); cerr != nil || rows == 0 {
		return errors.Join(err, cerr)
	}
	return &stagedError{err, rows}
}
