package cluster

import (
	"context"
	"sync"
)

// A LogStatus says how the log of a shard is.
type LogStatus struct {
	Shard  int    `json:"shard"` // its number
	First  uint64 `json:"first"` // sequence of its first message; Last+1 where it is empty
	Last   uint64 `json:"last"`  // sequence of its last message
	Bytes  int64  `json:"bytes"`
	Leader string `json:"leader"` // name of the NATS server that takes its writes; "" where there is none now

	// Err says why nothing is known of the log. While its servers choose a leader this is so for some
	// seconds.
	Err error `json:"-"`
}

// Logs returns how the logs of all shards are, by shard. A log that cannot be asked is one with an Err.
func (c *Client) Logs(ctx context.Context) []LogStatus {
	ctx, cancel := c.within(ctx)
	defer cancel()
	v := c.view.Load()
	logs := make([]LogStatus, v.Shards)
	var all sync.WaitGroup
	for i := range logs {
		all.Go(func() {
			info, err := v.logs[i].Info(ctx)
			logs[i] = LogStatus{Shard: v.Number(i), First: info.First, Last: info.Last, Bytes: info.Bytes, Leader: info.Leader, Err: err}
		})
	}
	all.Wait()
	return logs
}
