package source

import (
	"context"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/codec/perceptual"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/internal/rows"
)

// A Made source makes the codes or vectors of its items: Pictures or Texts.
type Made interface {
	rows.Source

	// Schema returns the schema of a collection for the items.
	Schema() (db.Schema, error)

	// Check takes the schema of the collection.
	Check(ctx context.Context, c api.Collection, schema db.Schema) error
}

// hashed is a source that makes the codes of its items.
type hashed struct {
	flag  string // that names the source
	given string // the hash that the user wants; "": that of the collection
	hash  *perceptual.Hash
}

// choose chooses a hash by its name.
func (s *hashed) choose(name string) error {
	s.hash = perceptual.Named(name)
	if s.hash != nil && (s.hash.OfPicture == nil) == (s.flag == "--texts") {
		return nil
	}
	var names []string
	for _, h := range perceptual.Hashes {
		if (h.OfPicture == nil) == (s.flag == "--texts") {
			names = append(names, h.Name)
		}
	}
	return exit.Usagef("--hash %q: %s takes %s", name, s.flag, strings.Join(names, ", "))
}

func (s *hashed) schema() db.Schema { return db.Schema{Bits: s.hash.Bits, Hash: s.hash.Name} }

// check takes the hash of the collection, which has to be the one that is given.
func (s *hashed) check(c api.Collection, schema db.Schema) error {
	switch {
	case schema.Bits == 0:
		return exit.Usagef("%s: collection %q learns its codes from vectors: make another one with --init --collection NAME",
			s.flag, c.Name())
	case schema.Hash == "":
		return exit.Usagef("%s: collection %q does not say which hash makes its codes: init --hash does", s.flag,
			c.Name())
	case s.given != "" && s.given != schema.Hash:
		return exit.Usagef("--hash %s: the codes of collection %q are by %s, and codes of two hashes do not compare",
			s.given, c.Name(), schema.Hash)
	}
	return s.choose(schema.Hash)
}
