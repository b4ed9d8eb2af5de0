package backup

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Where things are in a repository.
const (
	markerName = "fddhdb-backups.json" // written first
	objects    = "objects/"            // objects/ab/ab...: pieces of files
	backups    = "backups/"            // ID.json: manifests of backups that are complete
	running    = "running/"            // ID.json: manifests of backups that are being made
	pruning    = "pruning/"            // ID.json: what a prune is about to delete
)

// idForm is the time of a backup in milliseconds, so that ids sort by time, and 48
// random bits.
const idForm = `[0-9]{8}t[0-9]{6}-[0-9]{3}-[0-9a-f]{12}`

const pieceForm = `([0-9a-f]{64})-(` + idForm + `)(-[0-9]{1,9})?(\.zst)?`

var (
	validID     = regexp.MustCompile(`^` + idForm + `$`)
	validPiece  = regexp.MustCompile(`^` + pieceForm + `$`)
	validObject = regexp.MustCompile(`^[a-z0-9-][a-z0-9.-]*(/[a-z0-9-][a-z0-9.-]*)*$`)

	// What a repository has files of, and folders of.
	validFile   = regexp.MustCompile(`^((backups|running|pruning)/` + idForm + `\.json|objects/[0-9a-f]{2}/` + pieceForm + `)$`)
	validFolder = regexp.MustCompile(`^(backups|running|pruning|objects(/[0-9a-f]{2})?)$`)
)

// fillRandom is replaced by tests that have to be the same every time.
var fillRandom = func(b []byte) { rand.Read(b) } // which never fails

// latest is the time of the last backup that this process has begun.
var latest struct {
	sync.Mutex
	time.Time
}

// beginning returns the time for a backup that begins now, in milliseconds: later than
// that of the one before, so that ids of backups made one after the other sort that way.
func beginning() time.Time {
	latest.Lock()
	defer latest.Unlock()
	now := time.Now().UTC().Truncate(time.Millisecond)
	if ahead := latest.Sub(now); ahead >= 0 && ahead < time.Second { // else the clock was put back
		now = latest.Add(time.Millisecond)
	}
	latest.Time = now
	return now
}

func newID(t time.Time) string {
	var random [6]byte
	fillRandom(random[:])
	return idTime(t) + "-" + hex.EncodeToString(random[:])
}

// idTime is the part of an id that is the time.
func idTime(t time.Time) string {
	t = t.UTC()
	return t.Format("20060102t150405") + fmt.Sprintf("-%03d", t.Nanosecond()/1e6)
}

func jsonName(folder, id string) string { return folder + id + ".json" }

// idOf returns the id in the name of a manifest or plan in a folder.
func idOf(folder, name string) (string, bool) {
	id, ok := strings.CutPrefix(name, folder)
	if !ok {
		return "", false
	}
	id, ok = strings.CutSuffix(id, ".json")
	return id, ok && validID.MatchString(id)
}

// CheckName returns an error unless name may be that of an object in a Store.
func CheckName(name string) error {
	if len(name) > 200 || !validObject.MatchString(name) {
		return fmt.Errorf("%w: name of an object: %.200q", ErrInvalid, name)
	}
	for element := range strings.SplitSeq(name, "/") {
		if element[len(element)-1] == '.' || reserved(element) {
			return fmt.Errorf("%w: name of an object: %q: Windows has no file of that name", ErrInvalid, name)
		}
	}
	return nil
}

// checkPath returns an error unless path may be that of a file in a backup: relative,
// with '/', of characters and names that mean the same on all systems.
func checkPath(path string) error {
	if path == "" || len(path) > 200 {
		return damaged("a path of %d bytes", len(path))
	}
	for element := range strings.SplitSeq(path, "/") {
		if element == "" || element[0] == '.' || element[len(element)-1] == '.' || !plain(element) || reserved(element) {
			return damaged("path %q: not one that a backup has", path)
		}
	}
	return nil
}

func plain(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '.' || r == '-' || r == '_')
	}) < 0
}

// reserved reports whether Windows has a device of that name.
func reserved(element string) bool {
	stem, _, _ := strings.Cut(strings.ToLower(element), ".")
	switch stem {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(stem) == 4 && (stem[:3] == "com" || stem[:3] == "lpt") && '0' <= stem[3] && stem[3] <= '9'
}

func notThere(err error) bool { return errors.Is(err, fs.ErrNotExist) }
