package run

import (
	"context"
	"net/url"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/s3"
	"github.com/fddhdb/fddhdb/internal/inside"
)

// OpenRepository opens the store of a URL or path.
func OpenRepository(ctx context.Context, name string) (backup.Store, error) {
	if IsS3(name) {
		o, err := s3.ParseURL(name)
		if err != nil {
			return nil, exit.Usagef("%w", err)
		}
		s, err := s3.Open(ctx, o)
		if err != nil { // never return a nil *s3.Store as a Store
			return nil, err
		}
		return s, nil
	}
	path, err := FolderOf(name, runtime.GOOS == "windows")
	if err != nil {
		return nil, err
	}
	if IsFile(path) {
		return nil, exit.Usagef("%s is a file; backups are kept in a folder", path)
	}
	// A database and a repository in one folder would disturb each other.
	switch dir := inside.Database(path); {
	case dir == "":
	case sameFile(dir, path):
		return nil, exit.Usagef("%s is a database, and not where backups are kept", path)
	default:
		return nil, exit.Usagef("%s is in the database %s: keep backups elsewhere, best on another disk",
			path, dir)
	}
	return backup.Folder(path)
}

func IsS3(name string) bool { return strings.HasPrefix(strings.ToLower(name), "s3:") }

// Scheme matches the beginning of a URL; a single letter is a Windows drive.
var Scheme = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]+):`)

// FolderOf returns the path of a file URL or path.
func FolderOf(name string, windows bool) (string, error) {
	found := Scheme.FindStringSubmatch(name)
	if found == nil {
		return name, nil
	}
	u, err := url.Parse(name)
	switch {
	case !strings.EqualFold(found[1], "file"):
		return "", exit.Usagef("%s: backups are kept in a folder, file:///PATH, or in a bucket, s3://BUCKET/PREFIX?endpoint=https://HOST:PORT; a path with a colon begins with ./", term.Plain(name))
	case err != nil || u.RawQuery != "" || u.Fragment != "" || u.User != nil || u.Path == "" ||
		strings.ContainsRune(u.Path, 0) || u.Host != "" && u.Host != "localhost" && !windows:
		return "", exit.Usagef("%s: file:///PATH is expected, of this machine, with %%3F for a ?, %%23 for a # and %%25 for a %%; or just a path",
			term.Plain(name))
	case u.Host != "" && u.Host != "localhost":
		return filepath.FromSlash("//" + u.Host + u.Path), nil
	case windows && len(u.Path) > 2 && u.Path[2] == ':':
		return filepath.FromSlash(u.Path[1:]), nil
	}
	return filepath.FromSlash(u.Path), nil
}
