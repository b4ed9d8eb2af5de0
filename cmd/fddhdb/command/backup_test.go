package command

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
)

// A backup is restored as the database was, whatever was written afterwards.
func TestBackupAndRestore(t *testing.T) {
	f := newFixture(t, 60, true)
	url := f.path("backups")
	search := func(dir string) string {
		t.Helper()
		return must(t, "search", dir, "--from", "text", "--to", "image", "--vectors", f.text, "-k", "20",
			"--json")
	}
	before := search(f.db)
	var first, second backupJSON
	mustJSON(t, &first, "backup", f.db, url)
	if first.ID == "" || first.BytesTotal == 0 || first.BytesNew != first.BytesTotal || first.Seconds <= 0 {
		t.Errorf("the first backup: %+v", first)
	}
	must(t, "delete", f.db, "1", "2", "3")
	after := search(f.db)
	mustJSON(t, &second, "backup", f.db, url)
	if second.ID <= first.ID || second.BytesNew >= second.BytesTotal {
		t.Errorf("the second backup: %+v after %+v", second, first)
	}

	// The list, for people and for programs.
	if got := must(t, "backups", url); strings.Count(got, "\n") != 3 ||
		!strings.Contains(got, "\n"+first.ID+"  ") {
		t.Errorf("backups: %q", got)
	}
	var ids []string
	for line := range strings.Lines(must(t, "backups", url, "--json")) {
		var b backupJSON
		clitest.Check(t, json.Unmarshal([]byte(line), &b))
		ids = append(ids, b.ID)
	}
	if len(ids) != 2 || ids[0] != first.ID || ids[1] != second.ID {
		t.Errorf("%q are listed, %s and %s were made", ids, first.ID, second.ID)
	}
	if got := must(t, "verify", url); !strings.HasPrefix(got, "OK: 2 backups, ") {
		t.Errorf("verify: %q", got)
	}

	// The newest backup, one by id, and one by time.
	for name, c := range map[string]struct {
		args []string
		id   string
		want string
	}{
		"newest": {nil, second.ID, after},
		"id":     {[]string{"--id", first.ID}, first.ID, before},
		"time":   {[]string{"--before", first.Time.Local().Format(time.RFC3339Nano)}, first.ID, before},
	} {
		dir := f.path(name + ".db")
		var r backupJSON
		mustJSON(t, &r, append([]string{"restore", url, dir}, c.args...)...)
		if r.ID != c.id || r.Seconds <= 0 {
			t.Errorf("%s: %+v", name, r)
		}
		if got := search(dir); got != c.want {
			t.Errorf("%s: searches of the restored database find something else", name)
		}
	}

	// Pruned backups are gone, but not after a dry run.
	var p struct {
		Deleted, Kept []string
		DryRun        bool `json:"dry_run"`
		Bytes         int64
	}
	mustJSON(t, &p, "prune", url, "--keep", "1", "--dry-run")
	if len(p.Deleted) != 1 || p.Deleted[0] != first.ID || !p.DryRun || p.Bytes == 0 || len(p.Kept) != 1 {
		t.Errorf("prune --dry-run: %+v", p)
	}
	if got := must(t, "prune", url, "--keep", "1"); !strings.HasPrefix(got,
		"deleted "+first.ID+" of ") ||
		!strings.Contains(got, "; 1 backup kept\n") {
		t.Errorf("prune: %q", got)
	}
	says(t, exit.Usage, "no such backup", "restore", url, f.path("gone.db"), "--id", first.ID)
	if got := must(t, "restore", url, f.path("left.db")); !strings.HasPrefix(got,
		"restored "+second.ID+" to ") {
		t.Errorf("restore: %q", got)
	}
	if got := search(f.path("left.db")); got != after {
		t.Error("the backup that stays is another one after prune")
	}
}

func TestFolderOf(t *testing.T) {
	slashes := func(s string) string { return filepath.FromSlash(s) }
	for name, want := range map[string][2]string{ // on Windows, elsewhere
		"backups":                {"backups", "backups"},
		"./a:b":                  {"./a:b", "./a:b"},
		`C:\backups`:             {`C:\backups`, `C:\backups`},
		"file:///mnt/b":          {slashes("/mnt/b"), slashes("/mnt/b")},
		"file:/mnt/b":            {slashes("/mnt/b"), slashes("/mnt/b")},
		"FILE:///a%20b%3F":       {slashes("/a b?"), slashes("/a b?")},
		"file://localhost/mnt/b": {slashes("/mnt/b"), slashes("/mnt/b")},
		"file:///C:/backups":     {slashes("C:/backups"), slashes("/C:/backups")},
		"file://server/share/b":  {slashes("//server/share/b"), ""},
		"file://b":               {"", ""},
		"file:b":                 {"", ""},
		"file:///a?b":            {"", ""},
		"file:///a#b":            {"", ""},
		"file:///a%00b":          {"", ""},
		"file:///%zz":            {"", ""},
		"https://host/b":         {"", ""},
		"sftp://host/b":          {"", ""},
		"sftp:b":                 {"", ""},
	} {
		for i, windows := range []bool{true, false} {
			got, err := run.FolderOf(name, windows)
			if got != want[i] || (err == nil) != (want[i] != "") ||
				err != nil && exit.Code(err) != exit.Usage {
				t.Errorf("%s, Windows %v: %q, %v, want %q", name, windows, got, err, want[i])
			}
		}
	}
}

func TestParseTime(t *testing.T) {
	for s, want := range map[string]time.Time{
		"2026-03-01":                time.Date(2026, 3, 1, 0, 0, 0, 0, time.Local),
		"2026-03-01 12:30":          time.Date(2026, 3, 1, 12, 30, 0, 0, time.Local),
		"2026-03-01T12:30:05":       time.Date(2026, 3, 1, 12, 30, 5, 0, time.Local),
		"2026-03-01T12:30:05Z":      time.Date(2026, 3, 1, 12, 30, 5, 0, time.UTC),
		"2026-03-01T12:30:05+02:00": time.Date(2026, 3, 1, 10, 30, 5, 0, time.UTC),
	} {
		if got, err := parseTime(s); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "yesterday", "2026-13-01", "12:30"} {
		if got, err := parseTime(s); err == nil {
			t.Errorf("%q: %v", s, got)
		}
	}
}
