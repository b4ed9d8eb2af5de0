package serve

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// A Token is a line of a file of tokens: whose it is, what it allows, and the SHA-256 of its text. A token is
// random, so a plain hash keeps it secret.
type Token struct {
	Access
	Hash [sha256.Size]byte
}

// Tokens are the tokens of a file, which Load reads again. The zero value has none, and refuses everybody.
// It is safe for concurrent use.
type Tokens struct {
	list atomic.Pointer[[]Token]
}

// Load reads a file of tokens. After an error the tokens stay as they were.
//
// A line has four words: the name; the scope, read, write or admin; the collections, * or names with commas
// between them; and the hash. Lines that begin with # are comments.
func (t *Tokens) Load(path string) error {
	list, err := ReadTokens(path)
	if err == nil {
		t.list.Store(&list)
	}
	return err
}

// Access returns what the bearer token of a request allows, for Options.Access. It takes as long whatever
// token is presented.
func (t *Tokens) Access(r *http.Request) (*Access, error) {
	text, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !is {
		return nil, fmt.Errorf("%w: a token is expected, as Authorization: Bearer TOKEN",
			rest.ErrUnauthorized)
	}
	hash := sha256.Sum256([]byte(strings.TrimSpace(text)))
	var found *Access
	if list := t.list.Load(); list != nil {
		for i := range *list {
			if subtle.ConstantTimeCompare((*list)[i].Hash[:], hash[:]) == 1 {
				found = &(*list)[i].Access
			}
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%w: the token is unknown", rest.ErrUnauthorized)
	}
	return found, nil
}

// ReadTokens reads a file of tokens.
func ReadTokens(path string) (list []Token, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	scan := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; scan.Scan(); n++ {
		line := strings.TrimSpace(scan.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		token, err := parseToken(line)
		if err == nil && slices.ContainsFunc(list, func(x Token) bool { return x.Name == token.Name }) {
			err = fmt.Errorf("there are two tokens of the name %s", token.Name)
		}
		if err != nil {
			return nil, fault.Invalid("%s: line %d: %w", path, n, err)
		}
		list = append(list, token)
	}
	if err := scan.Err(); err != nil {
		return nil, fault.Invalid("%s: %w", path, err)
	}
	return list, nil
}

// tokenName is what names of tokens look like.
var tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$`)

func parseToken(line string) (t Token, err error) {
	parts := strings.Fields(line)
	if len(parts) != 4 {
		return t, errors.New("NAME SCOPE COLLECTIONS HASH are expected")
	}
	if t.Access, err = ParseAccess(parts[0], parts[1], parts[2]); err != nil {
		return t, err
	}
	hash, err := hex.DecodeString(parts[3])
	if err != nil || len(hash) != len(t.Hash) {
		return t, errors.New("the hash is not 64 hexadecimal digits")
	}
	t.Hash = [sha256.Size]byte(hash)
	return t, nil
}

// ParseAccess returns an access from words: a name, a scope, and collections, * or names with commas between.
func ParseAccess(name, scope, collections string) (a Access, err error) {
	i := slices.Index(scopeNames[:], scope)
	switch {
	case !tokenName.MatchString(name):
		return a, fault.Invalid("the name %q: up to 64 letters, digits and . _ @ - are possible", name)
	case i < int(Read):
		return a, fault.Invalid("the scope %q: read, write and admin are possible", scope)
	}
	a = Access{Name: name, Scope: Scope(i)}
	if collections != "*" {
		a.Collections = strings.Split(collections, ",")
		if slices.Contains(a.Collections, "") {
			return a, fault.Invalid("the collections %q: * or names with commas between them are expected",
				collections)
		}
	}
	return a, nil
}

// String returns the token as a line of the file.
func (t *Token) String() string {
	collections := "*"
	if len(t.Collections) > 0 {
		collections = strings.Join(t.Collections, ",")
	}
	return fmt.Sprintf("%s %s %s %x", t.Name, t.Scope, collections, t.Hash)
}

// NewToken returns a new token, and the line for the file. The text is not kept anywhere.
func NewToken(a Access) (text string, t Token) {
	text = "fddhdb_" + rand.Text() + rand.Text()[:10]
	return text, Token{a, sha256.Sum256([]byte(text))}
}

// WriteTokens writes a file of tokens, whole or not at all, for its user alone.
func WriteTokens(path string, list []Token) (err error) {
	var b bytes.Buffer
	b.WriteString("# name scope collections sha256: made by fddhdb token\n")
	for i := range list {
		fmt.Fprintln(&b, list[i].String())
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(b.Bytes())
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}
