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

// Names of objects in a repository.
const (
	markerName = "fddhdb-backups.json" // put first
	objects    = "objects/"            // objects/ab/ab...: pieces of files
	backups    = "backups/"            // ID.json: manifests of complete backups
	running    = "running/"            // ID.json: manifests of running backups
	pruning    = "pruning/"            // ID.json: plans of prunes
)

// idForm is the time of a backup in milliseconds, so that ids sort by time, and 48
// random bits.
const idForm = `[0-9]{8}t[0-9]{6}-[0-9]{3}-[0-9a-f]{12}`

const pieceForm = `([0-9a-f]{64})-(` + idForm + `)(-[0-9]{1,9})?`

var (
	validID     = regexp.MustCompile(`^` + idForm + `$`)
	validPiece  = regexp.MustCompile(`^` + pieceForm + `$`)
	validObject = regexp.MustCompile(`^[a-z0-9-][a-z0-9.-]*(/[a-z0-9-][a-z0-9.-]*)*$`)

	// Files and folders of a repository.
	validFile   = regexp.MustCompile(`^((backups|running|pruning)/` + idForm + `\.json|objects/[0-9a-f]{2}/` + pieceForm + `)$`)
	validFolder = regexp.MustCompile(`^(backups|running|pruning|objects(/[0-9a-f]{2})?)$`)
)

// fillRandom is replaced by tests that must be reproducible.
var fillRandom = func(b []byte) { rand.Read(b) } // never fails

// latest is the time of the last backup that this process has begun.
var latest struct {
	sync.Mutex
	time.Time
}

// beginning returns the begin of a backup in milliseconds. It is later than that of the
// backup before, so that ids of successive backups sort in order.
func beginning() time.Time {
	latest.Lock()
	defer latest.Unlock()
	now := time.Now().UTC().Truncate(time.Millisecond)
	if ahead := latest.Sub(now); ahead >= 0 && ahead < time.Second { // otherwise the clock was set back
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

// idTime returns the part of an id for a time.
func idTime(t time.Time) string {
	t = t.UTC()
	return t.Format("20060102t150405") + fmt.Sprintf("-%03d", t.Nanosecond()/1e6)
}

func jsonName(folder, id string) string { return folder + id + ".json" }

// idOf returns the id in the name of a manifest or plan.
func idOf(folder, name string) (string, bool) {
	id, ok := strings.CutPrefix(name, folder)
	if !ok {
		return "", false
	}
	id, ok = strings.CutSuffix(id, ".json")
	return id, ok && validID.MatchString(id)
}

// CheckName returns an error unless name may name an object in a Store.
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

// checkPath returns an error unless path may be a file of a backup: relative, with '/',
// and with characters and names that mean the same on all systems.
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

// reserved reports whether Windows has a device with that name.
func reserved(element string) bool {
	stem, _, _ := strings.Cut(strings.ToLower(element), ".")
	switch stem {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(stem) == 4 && (stem[:3] == "com" || stem[:3] == "lpt") && '0' <= stem[3] && stem[3] <= '9'
}

func notThere(err error) bool { return errors.Is(err, fs.ErrNotExist) }
