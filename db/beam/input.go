package beam

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/importer"
)

// An Input names the input files. It has Items, Backups, or parts of items: Vectors or Codes, with or without
// Labels, Keys and Fields. All but LabelNames are globs: their n-th files, in the order of names, belong
// together, and row i of each is about item i of the n-th group.
//
// Files are read as by fddhdb import. Without Keys, or a column of keys, items are numbered: an item has the
// key that it would get by an import of all files into an empty collection. Keys have to be distinct in all
// files together: a training counts an item with a repeated key as two, and Build keeps the last one.
type Input struct {
	Items      string           // whole items: .jsonl, .csv, .parquet
	Mapping    importer.Mapping // about the columns of Items
	Vectors    []NamedGlob      // by modality: .npy, .npz, .csv, .jsonl, .parquet, .mat
	Codes      string           // in place of Vectors: packed codes, .npy of uint8, of codes-only collections
	Labels     string           // of Vectors or Codes: a matrix, classes or text
	LabelNames string           // a file, of all Labels
	Keys       string           // of Vectors or Codes: a key a line
	Fields     string           // of Vectors or Codes: .csv, and with a Schema also .jsonl
	// repositories of backups; the newest backup of each counts: folders by glob, or s3://BUCKET/PREFIX
	Backups    string
	Collection string // the collection of Backups; "" means main

	Schema *db.Schema // of the items; nil: the schema of the first files
	Skip   bool       // leave out bad rows, and groups with unreadable files, which are errors otherwise
}

// A NamedGlob is a glob of the files of a modality.
type NamedGlob struct{ Modality, Glob string }

// A group is a set of files that belong together.
type group struct {
	Items   string      `json:"items,omitempty"`
	Vectors []NamedGlob `json:"vectors,omitempty"` // Glob is a file
	Codes   string      `json:"codes,omitempty"`
	Labels  string      `json:"labels,omitempty"`
	Keys    string      `json:"keys,omitempty"`
	Fields  string      `json:"fields,omitempty"`
	Backup  string      `json:"backup,omitempty"` // a repository
	ID      string      `json:"id,omitempty"`     // of its newest backup when the plan was made
}

// name names the files of a group in errors.
func (g *group) name() string { return strings.Join(g.files(), ", ") }

// files returns the files of a group.
func (g *group) files() (files []string) {
	for _, v := range g.Vectors {
		files = append(files, v.Glob)
	}
	return slices.DeleteFunc(append(files, g.Codes, g.Labels, g.Fields, g.Keys, g.Items, g.Backup),
		func(f string) bool { return f == "" })
}

// A plan tells workers about an input. It is a file of the temporary folder, named by its contents.
type plan struct {
	Version    int              `json:"version"` // of the format of the temporary folder
	Groups     []group          `json:"groups"`
	Files      []fileState      `json:"files"` // all files: other files make another plan
	Mapping    importer.Mapping `json:"mapping"`
	LabelNames string           `json:"label_names,omitempty"`
	Collection string           `json:"collection"`
	Schema     db.Schema        `json:"schema"`
	Skip       bool             `json:"skip"`

	note string // doubts about the guesses from the first files
}

// planVersion changes when the format of the temporary folder changes: then the files of an earlier release
// are not used.
const planVersion = 1

// A fileState tells a file from its replacement.
type fileState struct {
	Size     int64     `json:"size,omitempty"`
	Modified time.Time `json:"modified,omitzero"` // zero where a file system does not say
}

// plan lists the files of an input.
func (in *Input) plan(ctx context.Context) (*plan, error) {
	p := &plan{Version: planVersion, Mapping: in.Mapping, LabelNames: in.LabelNames,
		Collection: cmp.Or(in.Collection, "main"), Skip: in.Skip}
	if err := in.check(); err != nil {
		return nil, err
	}
	add := func(flag, glob string, set func(g *group, file string)) error {
		if glob == "" {
			return nil
		}
		pattern, member := cutMember(glob)
		pattern, err := absolute(pattern)
		if err != nil {
			return err
		}
		files, err := list(ctx, slash(pattern))
		if flag == "--backups " {
			files = slices.DeleteFunc(files, func(f string) bool { return !isFolder(f) })
		}
		switch {
		case err != nil:
			return inputError("%s%s: %w", flag, glob, err)
		case len(files) == 0:
			return inputError("%s%s: there is no such file", flag, glob)
		case p.Groups == nil:
			p.Groups = make([]group, len(files))
		case len(files) != len(p.Groups):
			return inputError("%s%s: %d files, and %d of %s: the n-th files of each belong together", flag,
				glob, len(files), len(p.Groups), p.Groups[0].name())
		}
		for i, f := range files {
			set(&p.Groups[i], f+member)
		}
		return nil
	}
	err := add("--items ", in.Items, func(g *group, f string) { g.Items = f })
	for _, v := range in.Vectors {
		if err == nil {
			err = add("--vectors "+v.Modality+"=", v.Glob,
				func(g *group, f string) { g.Vectors = append(g.Vectors, NamedGlob{v.Modality, f}) })
		}
	}
	err = cmp.Or(err, add("--codes ", in.Codes, func(g *group, f string) { g.Codes = f }))
	err = cmp.Or(err, add("--labels ", in.Labels, func(g *group, f string) { g.Labels = f }))
	err = cmp.Or(err, add("--fields ", in.Fields, func(g *group, f string) { g.Fields = f }))
	err = cmp.Or(err, add("--keys ", in.Keys, func(g *group, f string) { g.Keys = f }))
	if err == nil && in.Backups != "" {
		if remote(in.Backups) {
			p.Groups = []group{{Backup: in.Backups}}
		} else {
			err = add("--backups ", in.Backups, func(g *group, f string) { g.Backup = f })
		}
	}
	if err != nil {
		return nil, err
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		if g.Backup != "" {
			if g.ID, err = newestBackup(ctx, g.Backup); err != nil {
				return nil, err
			}
			continue
		}
		for _, f := range g.files() {
			f, _ = cutMember(f)
			state, err := stateOf(ctx, f)
			if err != nil {
				return nil, err
			}
			p.Files = append(p.Files, state)
		}
	}
	if p.LabelNames, err = absolute(p.LabelNames); err != nil {
		return nil, err
	}
	if p.LabelNames != "" {
		state, err := stateOf(ctx, p.LabelNames)
		if err != nil {
			return nil, err
		}
		p.Files = append(p.Files, state)
	}
	return p, p.describe(ctx, in.Schema)
}

// cutMember splits FILE.npz:NAME, FILE.parquet:COLUMN and FILE.mat:VARIABLE after the name of the file.
func cutMember(path string) (file, member string) {
	i := strings.LastIndexByte(path, ':')
	if i > 0 {
		for _, ext := range []string{".npz", ".parquet", ".mat"} {
			if strings.HasSuffix(strings.ToLower(path[:i]), ext) {
				return path[:i], path[i:]
			}
		}
	}
	return path, ""
}

// check refuses contradictory fields.
func (in *Input) check() error {
	parts := len(in.Vectors) > 0 || in.Codes != ""
	switch {
	case in.Items == "" && in.Backups == "" && !parts:
		return fault.Invalid("there is no input: --vectors NAME=GLOB, --codes GLOB, --items GLOB or --backups GLOB")
	case in.Items != "" && (parts || in.Backups != "") || in.Backups != "" && parts ||
		len(in.Vectors) > 0 && in.Codes != "":
		return fault.Invalid("--vectors, --codes, --items and --backups are ways to give the same: one of them is possible")
	case !parts && (in.Labels != "" || in.Keys != "" || in.Fields != "" || in.LabelNames != ""):
		return fault.Invalid("--labels, --label-names, --keys and --fields are about items of --vectors or --codes")
	case in.Schema == nil && in.Fields != "" && !strings.EqualFold(filepath.Ext(in.Fields), ".csv"):
		return fault.Invalid("--fields %s: the header of a .csv says the types of the fields, and other files do not", in.Fields)
	case in.LabelNames != "" && in.Labels == "":
		return fault.Invalid("--label-names names the labels of --labels, which is missing")
	}
	for i, v := range in.Vectors {
		if slices.ContainsFunc(in.Vectors[:i], func(o NamedGlob) bool { return o.Modality == v.Modality }) {
			return fault.Invalid("--vectors %s is given twice", v.Modality)
		}
	}
	return nil
}

// describe finds the schema of the items, from the first files unless it is given.
func (p *plan) describe(ctx context.Context, given *db.Schema) error {
	if given != nil {
		p.Schema = *given
		return nil
	}
	w := &worker{plan: p}
	return w.opened(ctx, 0, func(in *opened) (err error) {
		if in.backup != nil {
			p.Schema, err = in.backup.Schema()
			if err == nil && p.Schema.IndexOnly {
				err = inputError("%s: an index-only copy, which has no vectors", p.Groups[0].Backup)
			}
		} else {
			p.Schema, err = in.files.Schema()
			if d := in.files.Whole; err == nil && d != nil {
				p.note = d.Note()
			}
		}
		return err
	})
}

// A worker reads the items of a plan. Each process has one for a plan. Safe for concurrent use.
type worker struct {
	plan *plan

	mu sync.Mutex
	db api.Database   // in memory, to check items with
	c  api.Collection // its collection, of the schema of the plan
}

// workers are the workers of this process, by the path of their plan.
var workers struct {
	sync.Mutex
	of map[string]*worker
}

// workerOf returns the worker of a plan.
func workerOf(ctx context.Context, path string) (*worker, error) {
	workers.Lock()
	defer workers.Unlock()
	if w := workers.of[path]; w != nil {
		return w, nil
	}
	b, err := read(ctx, path)
	if err != nil {
		return nil, err
	}
	p := &plan{}
	if err := json.Unmarshal(b, p); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if workers.of == nil {
		workers.of = map[string]*worker{}
	}
	w := &worker{plan: p}
	workers.of[path] = w
	return w, nil
}

// collection returns an empty collection in memory, of the schema of the plan.
func (w *worker) collection(ctx context.Context) (api.Collection, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.c != nil {
		return w.c, nil
	}
	own, err := db.Open("db", &db.Options{FS: vfs.NewMem()})
	if err != nil {
		return nil, err
	}
	d := api.Folder(own, nil)
	c, err := d.CreateCollection(ctx, w.plan.Collection, w.plan.Schema)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	w.db, w.c = d, c
	return c, nil
}

// opened are the open files of a group.
type opened struct {
	files  *source.Files
	backup *db.Collection
	named  *strings.Replacer // from names of copies to names of files
}

// word gives an error the names of the files.
func (in *opened) word(err error) error {
	if err == nil || in.named == nil {
		return err
	}
	return &worded{in.named.Replace(err.Error()), err}
}

// A worded error replaces the text of an error.
type worded struct {
	text string
	err  error
}

func (e *worded) Error() string { return e.text }
func (e *worded) Unwrap() error { return e.err }

// opened calls f with the open files of a group.
func (w *worker) opened(ctx context.Context, number int, f func(*opened) error) (err error) {
	g := &w.plan.Groups[number]
	in := &opened{}
	if g.Backup != "" {
		return withBackup(ctx, g.Backup, g.ID, w.plan.Collection, func(c *db.Collection) error {
			in.backup = c
			return f(in)
		})
	}
	var names []string
	var all []func()
	defer func() {
		for _, done := range all {
			done()
		}
	}()
	at := func(file string) string {
		if err != nil || file == "" {
			return ""
		}
		file, member := cutMember(file)
		var path string
		var done func()
		if path, done, err = local(ctx, file); err != nil {
			return ""
		}
		all = append(all, done)
		if path != file {
			names = append(names, path, file)
		}
		return path + member
	}
	n := source.FileNames{
		Codes: at(g.Codes), Labels: at(g.Labels), LabelNames: at(w.plan.LabelNames), Fields: at(g.Fields),
		Keys: at(g.Keys), Options: importer.Options{Mapping: w.plan.Mapping},
	}
	if g.Items != "" {
		n.Items = source.Input{Path: at(g.Items), Name: g.Items}
	}
	for _, v := range g.Vectors {
		n.Vectors = append(n.Vectors,
			source.VectorFile{Modality: v.Modality, Input: source.Input{Path: at(v.Glob), Name: v.Glob}})
	}
	if err != nil {
		return err
	}
	if len(names) > 0 {
		in.named = strings.NewReplacer(names...)
	}
	if in.files, err = source.OpenFiles(n); err != nil {
		return in.word(err)
	}
	defer in.files.Close()
	return in.word(f(in))
}

// A rowFunc takes a row of a group: an item, valid until the function returns, or the error of a bad row.
type rowFunc func(row int, item *db.Item, bad error) error

// errEnough ends the reading of rows.
var errEnough = errors.New("enough rows")

// rows calls f with the rows of a group, in order, from one row on. names, unless it is nil, is called before
// the first row with ordered labels, to register them in their order.
func (w *worker) rows(ctx context.Context, number, from int, names func([]string), f rowFunc) error {
	err := w.opened(ctx, number, func(in *opened) error {
		if in.backup != nil {
			return backupRows(ctx, in.backup, from, f)
		}
		c, err := w.collection(ctx)
		if err != nil {
			return err
		}
		if err := in.files.Check(ctx, c, false); err != nil {
			return err
		}
		if l := in.files.Labels; l != nil && l.Ordered && names != nil {
			names(l.Names())
		}
		row := from
		return in.files.Each(ctx, from, func(item *db.Item, bad error) error {
			row++
			if bad != nil {
				return f(row-1, nil, in.word(bad))
			}
			return f(row-1, item, nil)
		})
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// backupRows is rows of a backup.
func backupRows(ctx context.Context, c *db.Collection, from int, f rowFunc) error {
	row := 0
	for item, err := range c.Items(ctx, "") {
		if err != nil {
			return err
		}
		if row++; row <= from {
			continue
		}
		if err := f(row-1, item, nil); err != nil {
			return err
		}
	}
	return nil
}

// checkRow returns the error that an import would give for an item; nil if it can be stored.
func (w *worker) checkRow(ctx context.Context, number, row int, item *db.Item) error {
	c, err := w.collection(ctx)
	if err != nil {
		return err
	}
	err = w.db.NewBatch().Put(c, item)
	if errors.Is(err, db.ErrInvalid) {
		return &importer.RowError{Err: inputError("%s: row %d: %s", w.plan.Groups[number].name(), row,
			reason(err))}
	}
	return err
}
