package s3_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/command"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/backup/storetest"
	"github.com/fddhdb/fddhdb/db/s3"
	"github.com/fddhdb/fddhdb/internal/versity"
)

// server starts a real one, or skips the test.
func server(t *testing.T) s3.Options {
	t.Helper()
	return s3.Options{Endpoint: versity.Start(t), Bucket: versity.Bucket, AccessKeyID: versity.Access,
		SecretAccessKey: versity.Secret}
}

// A real server keeps the promises of a store.
func TestServer(t *testing.T) {
	o := server(t)
	storetest.Run(t, func(t *testing.T) backup.Store {
		_, o.Prefix, _ = strings.Cut(strings.ToLower(t.Name()), "/")
		o.Prefix = "tests/" + o.Prefix
		s, err := s3.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

// Errors of a real server say what to do.
func TestServerRefuses(t *testing.T) {
	o := server(t)
	for name, c := range map[string]struct {
		change func(*s3.Options)
		want   string
	}{
		"bucket": {func(o *s3.Options) { o.Bucket = "another" }, "create the bucket at http://127.0.0.1:"},
		"key": {func(o *s3.Options) { o.AccessKeyID = "nobody" },
			"check the credentials, which come from the options"},
		"secret": {func(o *s3.Options) { o.SecretAccessKey = "wrong" },
			"check the secret key, which comes from the options"},
		"region": {func(o *s3.Options) { o.Region = "eu-west-7" }, "add region=us-east-1 to the URL"},
		"scheme": {func(o *s3.Options) { o.Endpoint = strings.Replace(o.Endpoint, "http", "https", 1) },
			"the server has no TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			o := o
			o.Tries = 2
			c.change(&o)
			_, err := s3.Open(t.Context(), o)
			refused(t, err, c.want)
		})
	}
	t.Setenv("AWS_ACCESS_KEY_ID", versity.Access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", versity.Secret)
	o, err := s3.ParseURL("s3://bucket/x?endpoint=" + o.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s3.Open(t.Context(), o); err != nil {
		t.Errorf("credentials of the environment: %v", err)
	}
}

// A database is backed up to a real server, changed and backed up again. Each backup
// restores the database of its time. Pruned backups are gone, and the others are whole.
func TestServerBackup(t *testing.T) {
	o := server(t)
	o.Prefix = "a/database"
	ctx := t.Context()
	s, err := s3.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	d, err := db.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: 64})
	if err != nil {
		t.Fatal(err)
	}
	var made []*backup.Manifest
	for round := range 3 {
		b := d.NewBatch()
		for i := range 5000 {
			key := fmt.Sprintf("%d-%d", round, i)
			if err := b.Put(c, &db.Item{Key: key, Code: noise(round, i, 8),
				Payload: noise(round, i, 1000)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		m, err := d.Backup(ctx, s, db.BackupOptions{})
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, m)
	}
	// Unchanged tables are not stored again.
	if err := d.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if made[2], err = d.Backup(ctx, s, db.BackupOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if made[2].BytesNew > made[2].BytesTotal/2 {
		t.Errorf("a backup of what has just been backed up stores %d of %d bytes", made[2].BytesNew,
			made[2].BytesTotal)
	}
	restored := func(round int) error {
		dir := t.TempDir()
		if _, err := db.Restore(ctx, s, dir, nil, db.RestoreOptions{ID: made[round].ID}); err != nil {
			return err
		}
		r, err := db.Open(dir, &db.Options{MustExist: true})
		if err != nil {
			return err
		}
		defer r.Close()
		c, err := r.Collection("main")
		if err != nil {
			return err
		}
		if n, err := c.Count(t.Context(), ""); err != nil || n != 5000*(round+1) {
			return fmt.Errorf("%d items, error %v, in the backup of round %d", n, err, round)
		}
		for i := range 5000 {
			item, err := c.Get(ctx, fmt.Sprintf("%d-%d", round, i))
			if err != nil {
				return err
			}
			if !bytes.Equal(item.Code, noise(round, i, 8)) ||
				!bytes.Equal(item.Payload, noise(round, i, 1000)) {
				return fmt.Errorf("item %s is another one", item.Key)
			}
		}
		return nil
	}
	for round := range 3 {
		if err := restored(round); err != nil {
			t.Error(err)
		}
	}
	if _, err := backup.Prune(ctx, s, backup.PruneOptions{Keep: 1}); err != nil {
		t.Fatal(err)
	}
	if err := restored(2); err != nil {
		t.Error(err)
	}
	if err := restored(0); err == nil {
		t.Error("a backup that has been pruned is restored")
	}
	v, err := backup.Verify(ctx, s, backup.VerifyOptions{},
		func(f backup.Finding) error { t.Error(f); return nil })
	if err != nil || v.Backups != 1 || v.Unneeded != 0 {
		t.Errorf("%+v, %v", v, err)
	}
}

// The verbs of backups take a bucket as they take a folder.
func TestCommand(t *testing.T) {
	o := server(t)
	t.Setenv("AWS_ACCESS_KEY_ID", versity.Access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", versity.Secret)
	dir, url := filepath.Join(t.TempDir(), "a.db"), "s3://"+versity.Bucket+"/a/b?endpoint="+o.Endpoint
	do := func(want int, args ...string) string {
		t.Helper()
		var out, problems bytes.Buffer
		if code := command.Main(args, strings.NewReader(""), &out, &problems); code != want {
			t.Fatalf("%q: %d, %s", args, code, problems.String())
		}
		return out.String() + problems.String()
	}
	put := func(key string) {
		t.Helper()
		do(0, "put", dir, key, "--code", "0a")
	}
	do(0, "init", dir, "--codes", "8")
	put("first")
	id := func() string {
		t.Helper()
		var made struct{ ID string }
		if err := json.Unmarshal([]byte(do(0, "backup", dir, url, "--json")), &made); err != nil {
			t.Fatal(err)
		}
		return made.ID
	}
	first := id()
	put("second")
	second := id()
	if out := do(0, "backups", url); !strings.Contains(out, first) || !strings.Contains(out, second) {
		t.Error(out)
	}
	if out := do(0, "verify", url); !strings.HasPrefix(out, "OK: 2 backups, ") {
		t.Error(out)
	}
	do(0, "restore", url, dir+"-first", "--id", first)
	if out := do(0, "count", dir+"-first"); strings.TrimSpace(out) != "1" {
		t.Error(out)
	}
	do(0, "prune", url, "--keep", "1")
	if out := do(0, "backups", url); strings.Contains(out, first) || !strings.Contains(out, second) {
		t.Error(out)
	}
	if out := do(1, "backups", "s3://another-bucket?endpoint="+o.Endpoint); !strings.Contains(out,
		"create the bucket at "+o.Endpoint) {
		t.Error(out)
	}
}

// noise returns bytes that do not compress and differ by item.
func noise(round, i, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(round), byte(i), byte(i >> 8)}).Read(b)
	return b
}

// refused checks an error: it has one prefix, and contains want.
func refused(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", want)
	}
	if !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "fddhdb: ") ||
		strings.Count(err.Error(), "fddhdb: ") != 1 {
		t.Errorf("%q, want %q, and fddhdb: once", err, want)
	}
	if strings.Contains(err.Error(), "secret key:") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%q tells a secret", err)
	}
}
