package mcp

import (
	"context"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/client"
)

// ServerWords returns the words of a database of a server, which runs the programs that make vectors.
func ServerWords(d *client.Database) Words { return serverWords{d} }

type serverWords struct{ d *client.Database }

// Takes leaves it to the server: it knows which programs it runs.
func (serverWords) Takes(string, string) bool { return true }

func (w serverWords) Encode(ctx context.Context, collection string, m db.Modality,
	text string) (x encoder.Vector, err error) {
	x.Dense, x.Sparse, err = w.d.Embed(ctx, collection, m.Name, text)
	return x, err
}
