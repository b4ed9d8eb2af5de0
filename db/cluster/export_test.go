package cluster

import "context"

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
