package backup

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Version is the version of manifests and repositories that this package writes. See
// docs/FORMAT.md.
const Version = 1

const (
	// pieceBytes is the size of all pieces of a file but the last. It bounds memory. If
	// a file grows at its end, its earlier pieces stay the same.
	pieceBytes = 16 << 20

	// maxManifest bounds the manifest of a backup in bytes: about ten TiB of files.
	maxManifest = 64 << 20
)

// A Manifest describes a backup.
type Manifest struct {
	Version    int       `json:"version"`
	ID         string    `json:"id"`                   // ids sort by time
	Time       time.Time `json:"time"`                 // begin of the backup, by the clock of its machine
	Database   string    `json:"database"`             // UUID of the database; "" if it has none
	Format     int       `json:"format"`               // of the database
	Sequence   uint64    `json:"sequence"`             // number of commits of the database
	Collection string    `json:"collection,omitempty"` // the only one in the backup; "" for all
	// without vectors and the records that only learning needs
	IndexOnly  bool  `json:"index_only,omitempty"`
	BytesTotal int64 `json:"bytes_total"` // of all files
	// bytes that this backup has added to the repository, as stored
	BytesNew int64  `json:"bytes_new"`
	Files    []File `json:"files,omitempty"`
}

// A File of a backup has a path relative to the folder of the database, with '/'. It is
// stored in pieces of 16 MiB.
type File struct {
	Path   string  `json:"path"`
	Size   int64   `json:"size"` // in bytes
	Pieces []Piece `json:"pieces"`
}

// A Piece names the object of a piece of a file: the SHA-256 of its bytes, and the id
// of the backup that stored it.
type Piece string

// Hash is the SHA-256 of a piece of a file.
type Hash [32]byte

// Hash returns the SHA-256 of the piece.
func (p Piece) Hash() (h Hash) {
	hex.Decode(h[:], []byte(p[:2*len(h)])) // other pieces are refused on decoding
	return h
}

// object returns the name of the object.
func (p Piece) object() string { return objects + string(p[:2]) + "/" + string(p) }

// owner returns the id of the backup that stored the piece.
func (p Piece) owner() string { return string(p[65 : 65+32]) }

func newPiece(h Hash, id string, round int) Piece {
	s := hex.EncodeToString(h[:]) + "-" + id
	if round > 0 {
		s += fmt.Sprintf("-%d", round)
	}
	return Piece(s)
}

// pieceOf returns the piece of an object's name.
func pieceOf(name string) (Piece, bool) {
	rest, ok := strings.CutPrefix(name, objects)
	if !ok || len(rest) < 3 || !validPiece.MatchString(rest[3:]) {
		return "", false
	}
	p := Piece(rest[3:])
	return p, p.object() == name
}

// UnmarshalJSON refuses anything that cannot be a piece.
func (p *Piece) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	if !validPiece.MatchString(s) {
		return damaged("piece %.120q", s)
	}
	*p = Piece(s)
	return nil
}

// UnmarshalJSON refuses anything that cannot be a file, so that a hostile manifest
// takes little more memory than its bytes.
func (f *File) UnmarshalJSON(b []byte) error {
	type plain File
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	*f = File(p)
	return f.check()
}

func (f *File) check() error {
	if err := checkPath(f.Path); err != nil {
		return err
	}
	if f.Size < 0 || int64(len(f.Pieces)) != pieces(f.Size) {
		return damaged("file %s: %d bytes in %d pieces", f.Path, f.Size, len(f.Pieces))
	}
	return nil
}

// pieces returns the number of pieces of a file of size bytes.
func pieces(size int64) int64 {
	n := size / pieceBytes
	if size%pieceBytes != 0 {
		n++
	}
	return n
}

// pieceSize returns the size of piece i.
func (f *File) pieceSize(i int) int { return int(min(pieceBytes, f.Size-int64(i)*pieceBytes)) }

func (m *Manifest) encode() ([]byte, error) {
	b, err := json.Marshal(m)
	if err == nil {
		b = addSum(b)
	}
	if err == nil && len(b) > maxManifest {
		err = fmt.Errorf("fddhdb: backup: a manifest of %d bytes, %d are the most: too many files", len(b),
			maxManifest)
	}
	return b, err
}

// A manifest ends with a member "sum": the SHA-256 of the manifest without it. It
// detects a flipped bit that gives another valid manifest. Manifests of earlier builds
// have no sum.
const (
	sumBegin = `,"sum":"`
	sumEnd   = `"}`
	sumBytes = len(sumBegin) + 2*sha256.Size + len(sumEnd)
)

// addSum adds the sum to an encoded manifest.
func addSum(b []byte) []byte {
	sum := sha256.Sum256(b)
	return append(append(append(b[:len(b)-1], sumBegin...), hex.EncodeToString(sum[:])...), sumEnd...)
}

// checkSum refuses a manifest with a wrong sum. If the member itself is damaged, the
// manifest counts as one without a sum; the rest of it is intact then.
func checkSum(b []byte) error {
	n := len(b) - sumBytes
	if n < 0 || !bytes.HasPrefix(b[n:], []byte(sumBegin)) || !bytes.HasSuffix(b, []byte(sumEnd)) {
		return nil
	}
	h := sha256.New()
	h.Write(b[:n])
	h.Write([]byte("}"))
	if want := b[n+len(sumBegin) : len(b)-len(sumEnd)]; hex.EncodeToString(h.Sum(nil)) != string(want) {
		return damaged("manifest: its sum is %.16s..., not %.16s...", hex.EncodeToString(h.Sum(nil)), want)
	}
	return nil
}

// DecodeManifest reads a manifest of any origin. No path of it is outside of the target
// folder, and no two files are the same. A newer version gives ErrVersion, anything
// else invalid ErrDamaged. It takes a few times the memory of b.
func DecodeManifest(b []byte) (*Manifest, error) {
	if len(b) > maxManifest {
		return nil, damaged("a manifest of %d bytes", len(b))
	}
	if err := checkSum(b); err != nil {
		return nil, err
	}
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, damaged("manifest: %w", err)
	}
	if err := checkVersion("manifest", v.Version); err != nil {
		return nil, err
	}
	m := new(Manifest)
	if err := json.Unmarshal(b, m); errors.Is(err, ErrDamaged) {
		return nil, err
	} else if err != nil {
		return nil, damaged("manifest: %w", err)
	}
	return m, m.check()
}

func checkVersion(what string, v int) error {
	switch {
	case v > Version:
		return fmt.Errorf("%w: %s of version %d, this fddhdb reads up to %d: use a newer one", ErrVersion,
			what, v, Version)
	case v < 1:
		return damaged("%s of version %d", what, v)
	}
	return nil
}

func (m *Manifest) check() error {
	switch {
	case !validID.MatchString(m.ID):
		return damaged("manifest: id %.40q", m.ID)
	case !strings.HasPrefix(m.ID, idTime(m.Time)):
		return damaged("manifest %s: of another time, %s", m.ID, m.Time)
	case len(m.Database) > 64 || !plain(m.Database):
		return damaged("manifest %s: UUID %.70q", m.ID, m.Database)
	case m.Format < 0 || m.BytesNew < 0:
		return damaged("manifest %s: a negative number", m.ID)
	}
	paths := make([]string, len(m.Files))
	var total int64
	for i := range m.Files {
		f := &m.Files[i]
		if err := f.check(); err != nil {
			return err
		}
		paths[i] = strings.ToLower(f.Path)
		if total += f.Size; total < 0 {
			return damaged("manifest %s: more bytes than there can be", m.ID)
		}
	}
	if total != m.BytesTotal {
		return damaged("manifest %s: files of %d bytes, of %d in all", m.ID, total, m.BytesTotal)
	}
	// With '/' as the lowest character a folder sorts right before its contents.
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
	})
	for i := 1; i < len(paths); i++ {
		if paths[i] == paths[i-1] || strings.HasPrefix(paths[i], paths[i-1]+"/") {
			return damaged("manifest %s: paths %q and %q name one file", m.ID, paths[i-1], paths[i])
		}
	}
	return nil
}

// kind is shared by the backups that replace each other: a newer one makes an older one
// unneeded.
type kind struct {
	database, collection string
	indexOnly            bool
}

func (m *Manifest) kind() kind { return kind{m.Database, m.Collection, m.IndexOnly} }

// brief returns the manifest without its files.
func (m *Manifest) brief() *Manifest {
	b := *m
	b.Files = nil
	return &b
}

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
	validFile = regexp.MustCompile(`^((backups|running|pruning)/` + idForm + `\.json|objects/[0-9a-f]{2}/` +
		pieceForm + `)$`)
	validFolder = regexp.MustCompile(`^(backups|running|pruning|objects(/[0-9a-f]{2})?)$`)
)

// fillRandom is replaced by tests that must be reproducible.
var fillRandom = func(b []byte) { rand.Read(b) } // never fails

// latest is the time of the last backup that this process has begun.
var latest struct {
	sync.Mutex
	time.Time
}

// beginning returns the begin of a backup in milliseconds. It is later than the begin of the backup before,
// so that ids of successive backups sort in order.
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
		if element == "" || element[0] == '.' || element[len(element)-1] == '.' || !plain(element) ||
			reserved(element) {
			return damaged("path %q: not one that a backup has", path)
		}
	}
	return nil
}

func plain(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '.' ||
			r == '-' || r == '_')
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
