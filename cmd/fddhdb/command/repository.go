package command

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/s3"
	"github.com/fddhdb/fddhdb/internal/inside"
)

// A repository of backups is named by file:///PATH, a path, or s3://BUCKET/PREFIX.

// repositoryHelp explains the URL in the help of verbs that take one.
const repositoryHelp = `
			URL is where backups are kept: a folder, as file:///PATH or just as its path, or
			a bucket of S3 or of a store like it,
			  s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=REGION
			of which the endpoint is needed for stores that are not Amazon's. Quote it: shells
			have other plans with ? and &. Credentials come from AWS_ACCESS_KEY_ID and
			AWS_SECRET_ACCESS_KEY, from ~/.aws, or from the role of the machine.`

// openRepository opens the store of a URL or path.
func openRepository(ctx context.Context, name string) (backup.Store, error) {
	if isS3(name) {
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
	path, err := folderOf(name, runtime.GOOS == "windows")
	if err != nil {
		return nil, err
	}
	if isFile(path) {
		return nil, exit.Usagef("%s is a file; backups are kept in a folder", path)
	}
	// A database and a repository in one folder would disturb each other.
	switch dir := inside.Database(path); {
	case dir == "":
	case sameFile(dir, path):
		return nil, exit.Usagef("%s is a database, and not where backups are kept", path)
	default:
		return nil, exit.Usagef("%s is in the database %s: keep backups elsewhere, best on another disk", path, dir)
	}
	return backup.Folder(path)
}

func isS3(name string) bool { return strings.HasPrefix(strings.ToLower(name), "s3:") }

// scheme matches the beginning of a URL; a single letter is a Windows drive.
var scheme = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]+):`)

// folderOf returns the path of a file URL or path.
func folderOf(name string, windows bool) (string, error) {
	found := scheme.FindStringSubmatch(name)
	if found == nil {
		return name, nil
	}
	switch strings.ToLower(found[1]) {
	case "file":
	case "http", "https":
		return "", exit.Usagef("%s: backups are kept in a folder, file:///PATH, or in a bucket, s3://BUCKET/PREFIX?endpoint=%s://HOST:PORT", term.Plain(name), found[1])
	default:
		return "", exit.Usagef("%s: backups are kept in a folder, file:///PATH, or in a bucket, s3://BUCKET/PREFIX; a path with a colon begins with ./", term.Plain(name))
	}
	u, err := url.Parse(name)
	if err != nil {
		return "", exit.Usagef("%s: file:///PATH is expected, with %%25 for a %%", term.Plain(name))
	}
	switch path := u.Path; {
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return "", exit.Usagef("%s: file:///PATH is expected, with %%3F for a ? and %%23 for a #", term.Plain(name))
	case path == "" || strings.ContainsRune(path, 0):
		return "", exit.Usagef("%s: file:///PATH is expected", term.Plain(name))
	case u.Host != "" && u.Host != "localhost":
		if windows {
			return filepath.FromSlash("//" + u.Host + path), nil
		}
		return "", exit.Usagef("%s: %s would be another machine: file:///PATH is expected, with three slashes, or just a path", term.Plain(name), u.Host)
	case windows && len(path) > 2 && path[2] == ':':
		return filepath.FromSlash(path[1:]), nil
	default:
		return filepath.FromSlash(path), nil
	}
}

// repositoryError adds advice to an error of package backup.
func repositoryError(name string, err error) error {
	switch {
	case errors.Is(err, backup.ErrNotRepository) && !holdsNone(err):
		return err // the marker is damaged, and the error says what to do
	case errors.Is(err, backup.ErrNotRepository) && !mayBegin(name):
		return exit.Usagef("%w: %s: give a folder with backups, or for a first one an empty folder", err, term.Plain(name))
	case errors.Is(err, backup.ErrNotRepository):
		return exit.Usagef("%w: %s: fddhdb backup DIR %s makes the first backup there", err, term.Plain(name), term.Plain(name))
	case errors.Is(err, backup.ErrNotFound):
		return exit.Usagef("%w: fddhdb backups %s lists what there is", err, term.Plain(name))
	case errors.Is(err, backup.ErrInvalid):
		return exit.Usagef("%w", err)
	case errors.Is(err, backup.ErrVersion):
		return exit.Wrap(err, "use a newer fddhdb")
	case errors.Is(err, backup.ErrDamaged):
		return exit.Wrap(err, "fddhdb verify %s says what is wrong with the backups", term.Plain(name))
	}
	return err
}

// mayBegin reports whether a first backup may go to a URL or path: no folder with something else.
func mayBegin(name string) bool {
	path, err := folderOf(name, runtime.GOOS == "windows")
	return isS3(name) || err == nil && isEmpty(path)
}

// urlArg accepts the URL of a repository as the only argument.
func urlArg(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || args[0] == "":
		return exit.Usagef("%s needs the URL of the backups: fddhdb %s", cmd.Name(), cmd.Use)
	case len(args) > 1:
		return exit.Usagef("%s does not know what to do with %q: fddhdb %s", cmd.Name(), args[1], cmd.Use)
	}
	return nil
}

// twoArgs accepts a folder and a URL, in either order.
func twoArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) < 2 || args[0] == "" || args[1] == "":
		return exit.Usagef("%s needs both the folder of a database and the URL of the backups: fddhdb %s", cmd.Name(), cmd.Use)
	case len(args) > 2:
		return exit.Usagef("%s does not know what to do with %q: fddhdb %s", cmd.Name(), args[2], cmd.Use)
	}
	return nil
}

// content describes the content of a backup in words.
func content(m *backup.Manifest) string {
	what := "everything"
	if m.Collection != "" {
		what = "collection " + term.Plain(m.Collection)
	}
	if m.IndexOnly {
		what += ", index only"
	}
	return what
}

// shortUUID returns enough of a UUID to tell databases apart.
func shortUUID(m *backup.Manifest) string {
	if m.Database == "" {
		return "-"
	}
	return fmt.Sprintf("%.8s", m.Database)
}
