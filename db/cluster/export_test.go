package cluster

import (
	"context"

	"github.com/fddhdb/fddhdb/db/api"
)

// RenewUnheard takes a lease, and renews it once more, as if the answer of the servers had been lost. end
// gives it back; lost is closed when the holder has lost it.
func RenewUnheard(ctx context.Context, c *Client, name string) (end func(), lost <-chan struct{}, err error) {
	l, err := c.take(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	unheard := *l
	return func() { l.end(c) }, l.ctx.Done(), unheard.renew(ctx)
}

// Database returns the cluster of a collection as a database of package api.
func (c *Collection) Database() api.Database { return c.client.Database(DatabaseOptions{}) }
