package verify

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
)

// The other checks read records through the store, and see what a search would see. Damage where
// nothing is read today would be met by a compaction tomorrow, so all blocks are checked here.

// tables checks the checksums of all blocks of the tables that the store has. That covers what
// reading all records does not: blocks of replaced values, filters and indexes. A table that
// several virtual tables share is read for each of them. Compactions go on meanwhile.
func (v *verifier) tables(fsys vfs.FS, dir string, kv *pebble.DB) {
	v.at("tables")
	levels, err := kv.SSTables()
	if err != nil {
		v.found(report.Finding{Record: "tables", Problem: "they cannot be listed: " + fault.Problem(err)}, nil)
		return
	}
	options := store.PebbleOptions(&store.Config{FS: fsys}, &store.Log{}, false) // only for MakeReaderOptions
	options.EnsureDefaults()
	for _, level := range levels {
		for _, table := range level {
			number := uint64(table.FileNum)
			if table.Virtual {
				// The table is a part of the file of another one.
				number = uint64(table.BackingSSTNum)
			}
			if v.err == nil {
				v.err = v.ctx.Err()
			}
			if v.err != nil {
				return
			}
			name := fmt.Sprintf("%06d.sst", number)
			err := v.table(fsys, fsys.PathJoin(store.Path(fsys, dir), name), options.MakeReaderOptions())
			if errors.Is(err, fs.ErrPermission) { // that is no damage
				v.err = fault.Annotate(err, "verify")
				return
			}
			// A table that is gone has been compacted meanwhile. If it were missing, the store
			// would not have opened.
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				record := "table " + name
				v.found(report.Finding{Record: record, Problem: strings.TrimPrefix(fault.Problem(err), record+": ")}, nil)
			}
		}
	}
}

// table checks the blocks of one table, by its file and not through the store's cache.
func (v *verifier) table(fsys vfs.FS, path string, options sstable.ReaderOptions) (err error) {
	r, err := store.OpenTable(v.ctx, fsys, path, options)
	if err != nil {
		return err
	}
	return errors.Join(r.ValidateBlockChecksums(), r.Close())
}
