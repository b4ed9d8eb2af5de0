package beam

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/db/shard"
)

// Verified is the result of Verify.
type Verified struct {
	Shards   int      `json:"shards"`
	Items    int      `json:"items"`
	Codes    int      `json:"codes_checked"` // codes that were made again, with the same result
	Findings []string `json:"findings,omitempty"`
}

// verifiedShard is a worker's result for a shard.
type verifiedShard struct {
	Items    int      `json:"items"`
	Codes    int      `json:"codes"`
	Findings []string `json:"findings,omitempty"`
}

// Verify restores each shard of a build on a worker, and checks it: its files against their SHA-256, the
// database as by db.VerifyFolder, deeply, its items against build.json, and each key against the shard.
// Findings are no error.
//
// A worker verifies up to two shards at a time. Each takes the memory of db.VerifyFolder, and its own size on
// the worker's disk. Errors: of build.json, which must exist; the last try of the pipeline; the end of ctx.
func Verify(ctx context.Context, out string, r *Run) (*Verified, error) {
	if err := r.begin(); err != nil {
		return nil, err
	}
	out, err := absolute(out)
	if err != nil {
		return nil, err
	}
	path := join(out, builtName)
	if !exists(ctx, path) {
		return nil, inputError("%s is missing: %s is no build, or one that has not ended: run it again",
			builtName, out)
	}
	b, err := read(ctx, path)
	if err != nil {
		return nil, err
	}
	built, err := parseBuilt(b)
	if err != nil {
		return nil, inputError("%s: %w", path, err)
	}
	dir := join(r.Temp, "verify-"+hash(append(b, out...))[:16])
	// The database may have changed since an earlier run.
	if err := removeAll(ctx, dir); err != nil {
		return nil, err
	}
	var results []string
	var tasks [][]byte
	for _, s := range built.Shards {
		b, err := json.Marshal(s)
		if err != nil {
			return nil, err
		}
		tasks, results = append(tasks, b), append(results, verifiedPath(dir, s.Shard))
	}
	err = r.pipeline(ctx, "verify", dir, results, func(scope sdk.Scope) {
		drain(scope, sdk.ParDo(scope, &VerifyFn{Out: out, Dir: dir, Shards: len(built.Shards),
			Collection: built.Collection, Model: built.Model}, each(scope, tasks)))
	})
	if err != nil {
		return nil, err
	}
	v := &Verified{Shards: len(built.Shards)}
	for _, path := range results {
		var s verifiedShard
		if err := readJSON(ctx, path, &s); err != nil {
			return nil, err
		}
		v.Items += s.Items
		v.Codes += s.Codes
		v.Findings = append(v.Findings, s.Findings...)
	}
	if v.Items != built.Items && len(v.Findings) == 0 {
		v.Findings = append(v.Findings, fmt.Sprintf("there are %d items, and %s says %d", v.Items, builtName,
			built.Items))
	}
	_ = removeAll(ctx, dir) // the rest only takes space
	return v, nil
}

// parseBuilt reads build.json.
func parseBuilt(b []byte) (*Built, error) {
	var built Built
	if err := json.Unmarshal(b, &built); err != nil {
		return nil, err
	}
	switch {
	case built.Version > builtVersion:
		return nil, fmt.Errorf("it is of version %d, and this program knows %d: use a newer one",
			built.Version, builtVersion)
	case built.Version < 1 || built.Hash != shardHash:
		return nil, fmt.Errorf("version %d with the hash %q", built.Version, built.Hash)
	case len(built.Shards) == 0 || len(built.Shards) > maxShards:
		return nil, fmt.Errorf("%d shards", len(built.Shards))
	}
	for i, s := range built.Shards {
		if s.Shard != i || s.Repository != shardName(i) {
			return nil, fmt.Errorf("shard %d is %d, in %q", i, s.Shard, s.Repository)
		}
	}
	return &built, nil
}

func verifiedPath(dir string, shard int) string {
	return join(dir, fmt.Sprintf("verified-%04d.json", shard))
}

// VerifyFn verifies shards.
type VerifyFn struct {
	Out, Dir   string
	Shards     int
	Collection string
	Model      string // SHA-256

	items sdk.Counter
}

func init() { register.DoFn3x1[context.Context, []byte, func(string), error](&VerifyFn{}) }

// Setup implements a DoFn.
func (f *VerifyFn) Setup() { f.items = sdk.NewCounter(namespace, "items verified") }

// ProcessElement verifies a shard.
func (f *VerifyFn) ProcessElement(ctx context.Context, b []byte, emit func(string)) error {
	done, err := working(ctx, f.Dir)
	if err != nil {
		return err
	}
	defer done()
	var s Shard
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	path := verifiedPath(f.Dir, s.Shard)
	if exists(ctx, path) {
		return nil
	}
	dir, err := newLocalDir("db-*")
	if err != nil {
		return err
	}
	v := &verifiedShard{}
	found := func(format string, args ...any) {
		if len(v.Findings) < 100 {
			v.Findings = append(v.Findings, fmt.Sprintf("shard %d: ", s.Shard)+fmt.Sprintf(format, args...))
		}
	}
	err = f.verify(ctx, &s, filepath.Join(dir, "db"), v, found)
	if errors.Is(err, backup.ErrDamaged) || errors.Is(err, backup.ErrNotFound) ||
		errors.Is(err, backup.ErrNotRepository) || errors.Is(err, backup.ErrNoBackup) ||
		errors.Is(err, db.ErrCorrupt) {
		found("%s", reason(err))
		err = nil
	}
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		return fmt.Errorf("shard %d: %s", s.Shard, reason(err))
	}
	f.items.Inc(ctx, int64(v.Items))
	if b, err = json.Marshal(v); err != nil {
		return err
	}
	if err := write(ctx, path, b); err != nil {
		return err
	}
	emit(path)
	return nil
}

func (f *VerifyFn) verify(ctx context.Context, s *Shard, dir string, v *verifiedShard,
	found func(format string, args ...any)) (err error) {
	from, err := store(ctx, join(f.Out, s.Repository))
	if err != nil {
		return err
	}
	if _, err := db.Restore(ctx, from, dir, nil, db.RestoreOptions{ID: s.Backup,
		SkipVerify: true}); err != nil {
		return err
	}
	deep, err := db.VerifyFolder(ctx, dir, nil, db.VerifyOptions{Deep: true}, func(x report.Finding) error {
		found("%s", x)
		return nil
	})
	if err != nil {
		return err
	}
	v.Codes = deep.CodesChecked
	d, err := db.Open(dir, &db.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	c, err := d.Collection(f.Collection)
	if err != nil {
		found("it has no collection %q", f.Collection)
		return nil
	}
	for key, err := range c.Keys(ctx, "") {
		if err != nil {
			return err
		}
		v.Items++
		if of := shard.Of(key, f.Shards); of != s.Shard {
			found("the key %q belongs to shard %d", key, of)
		}
	}
	if v.Items != s.Items {
		found("it has %d items, and %s says %d", v.Items, builtName, s.Items)
	}
	if f.Model == "" {
		return nil
	}
	var file bytes.Buffer
	if err := c.ExportModel(ctx, &file); err != nil {
		found("it has no model: %s", reason(err))
		return nil
	}
	if hash(file.Bytes()) != f.Model {
		found("its model is another one than that of the build")
	}
	return nil
}
