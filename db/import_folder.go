package db

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Each staged import is a folder in imports/, with these things in it:
//
//	HEAD          JSON: what it is an import of, see importHeader
//	000001.items  what is staged, see spool
//	COMMIT        from before its commit on: which commit that is, see pledge
//
// A folder whose name ends in ".gone" is being removed.
const (
	importsName  = "imports"
	importHead   = "HEAD"
	importPledge = "COMMIT"
	importGone   = ".gone"
)

// importVersion is that of the files of a staged import. Those of another version are
// staged anew.
const importVersion = 1

// keptImports is how long what an interrupted import has staged is kept for it to go on.
const keptImports = 7 * 24 * time.Hour

// An importHeader says what has been staged.
type importHeader struct {
	FDDHDB     string `json:"fddhdb"`
	Version    int    `json:"version"`
	UUID       string `json:"uuid,omitempty"` // of the database
	Collection uint32 `json:"collection"`
	Source     string `json:"source"`
}

// name returns the name of the folder.
func (h *importHeader) name() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", h.Collection, h.Source))
	return hex.EncodeToString(sum[:12])
}

func readImportHeader(fsys vfs.FS, dir string) (h importHeader, err error) {
	b, err := readSmall(fsys, fsys.PathJoin(dir, importHead), 4*maxSourceBytes)
	if err == nil && (json.Unmarshal(b, &h) != nil || h.FDDHDB != "import") {
		return importHeader{}, nil // of none
	}
	return h, err
}

func (h *importHeader) write(fsys vfs.FS, dir string) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return replaceFile(fsys, dir, importHead, append(b, '\n'))
}

// readSmall reads a file of at most so many bytes.
func readSmall(fsys vfs.FS, path string, most int64) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, most))
	return b, errors.Join(err, f.Close())
}

// A pledge says, from before an import is committed until it is forgotten, which commit of
// the database it is. So an import whose process ended around its commit is known to be
// done, or not: there is such a commit then, or there is none. What opens the database
// takes back the pledge of a commit that has not come about, before there can be another
// of that number.
type pledge struct {
	fs  vfs.FS
	dir string
}

const pledgeBytes = 12

// give writes the pledge for the next commit, durably.
func (p *pledge) give(c *committer) error {
	if p == nil {
		return nil
	}
	b := binary.LittleEndian.AppendUint64(nil, c.sequence+1)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	err := replaceFile(p.fs, p.dir, importPledge, b)
	if err != nil {
		p.takeBack(c)
	}
	return err
}

// takeBack removes it. Where that fails so does the database: a later commit would be
// taken for this one.
func (p *pledge) takeBack(c *committer) {
	if p == nil {
		return
	}
	if err := removeFile(p.fs, p.dir, importPledge); err != nil {
		c.log.fail(err)
	}
}

// readPledge returns the commit that a pledge is for; given is false where there is none.
func readPledge(fsys vfs.FS, dir string) (sequence uint64, given bool, err error) {
	path := fsys.PathJoin(dir, importPledge)
	b, err := readSmall(fsys, path, pledgeBytes+1)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	if len(b) != pledgeBytes || binary.LittleEndian.Uint32(b[8:]) != crc32.Checksum(b[:8], castagnoli) {
		return 0, true, corrupt(errors.New("it has another sum"), "%s, which says whether an import has been committed: look whether its items are there, and discard it", path)
	}
	return binary.LittleEndian.Uint64(b), true, nil
}

// removeFile removes a file durably, if there is one.
func removeFile(fsys vfs.FS, dir, name string) error {
	if err := fsys.Remove(fsys.PathJoin(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncDir(fsys, dir)
}

// removeImport removes the folder of a staged import: at once, as far as anybody sees.
func removeImport(fsys vfs.FS, dir string) error {
	gone := dir + importGone
	if _, err := fsys.Stat(gone); err == nil {
		if err := fsys.RemoveAll(gone); err != nil {
			return err
		}
	}
	if err := fsys.Rename(dir, gone); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return errors.Join(syncDir(fsys, fsys.PathDir(dir)), fsys.RemoveAll(gone))
}

// settleImports takes back the pledges of commits that have not come about.
func (d *DB) settleImports() error {
	names, err := d.importNames()
	if err != nil {
		return err
	}
	for _, name := range names {
		dir := d.importDir(name)
		if strings.HasSuffix(name, importGone) {
			if err := d.opts.FS.RemoveAll(dir); err != nil { // another time: nobody reads it
				d.opts.Logger.Warn("what was staged is not removed", "folder", dir, "error", err)
			}
			continue
		}
		sequence, given, err := readPledge(d.opts.FS, dir)
		if errors.Is(err, ErrCorrupt) {
			continue // whoever goes on with the import hears of it
		}
		if err == nil && given && sequence > d.identity.sequence {
			err = removeFile(d.opts.FS, dir, importPledge)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *DB) importDir(name string) string {
	return d.opts.FS.PathJoin(d.dir, importsName, name)
}

// importNames lists the folders of staged imports.
func (d *DB) importNames() ([]string, error) {
	names, err := d.opts.FS.List(d.opts.FS.PathJoin(d.dir, importsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	slices.Sort(names)
	return names, err
}

// A StagedImport is what an import has staged that is not committed: it goes on, or was
// interrupted.
type StagedImport struct {
	Collection string    `json:"collection"` // "" where that is gone
	Source     string    `json:"source"`     // ImportOptions.Source
	Bytes      int64     `json:"bytes"`      // on disk
	Touched    time.Time `json:"touched"`    // when something of it was last written
	Open       bool      `json:"open"`       // it goes on, in this process

	name string
}

// StagedImports returns the imports that have staged items and are not committed. It looks
// at the folder of the database only.
func (d *DB) StagedImports() ([]StagedImport, error) {
	var all []StagedImport
	err := d.read(func(v *view) (err error) {
		all, err = d.stagedImports(v)
		return annotate(err, "staged imports of %s", d.dir)
	})
	return all, err
}

func (d *DB) stagedImports(v *view) ([]StagedImport, error) {
	names, err := d.importNames()
	if err != nil {
		return nil, err
	}
	fsys := d.opts.FS
	var all []StagedImport
	for _, name := range names {
		if strings.HasSuffix(name, importGone) {
			continue
		}
		dir := d.importDir(name)
		h, err := readImportHeader(fsys, dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		im := StagedImport{Source: h.Source, Open: d.imports.has(name), name: name}
		if cv := v.collections[h.Collection]; cv != nil {
			im.Collection = cv.Name
		}
		files, err := fsys.List(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it has just ended
			return nil, err
		}
		for _, file := range files {
			if info, err := fsys.Stat(fsys.PathJoin(dir, file)); err == nil {
				im.Bytes += info.Size()
				if t := info.ModTime(); t.After(im.Touched) {
					im.Touched = t
				}
			}
		}
		all = append(all, im)
	}
	return all, nil
}

// RemoveStagedImports removes what imports have staged, but for those that go on in this
// process, and returns what it has removed. The imports begin anew then. What is young is
// kept: what something has been written of after a time.
func (d *DB) RemoveStagedImports(ctx context.Context, before time.Time) ([]StagedImport, error) {
	if err := d.writable(); err != nil {
		return nil, err
	}
	var removed []StagedImport
	err := d.read(func(v *view) error {
		all, err := d.stagedImports(v)
		for _, im := range all {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil && (im.Collection == "" || im.Touched.Before(before)) && d.imports.take(im.name, nil) {
				if err = removeImport(d.opts.FS, d.importDir(im.name)); err == nil {
					removed = append(removed, im)
				}
				d.imports.leave(im.name)
			}
		}
		return annotate(err, "remove staged imports of %s", d.dir)
	})
	return removed, err
}
