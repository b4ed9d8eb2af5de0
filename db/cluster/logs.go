package cluster

import (
	"context"
	"sync"
)

// A LogStatus is the state of the log of a shard.
type LogStatus struct {
	Shard  int    `json:"shard"` // its number
	First  uint64 `json:"first"` // sequence of its first message; Last+1 if it is empty
	Last   uint64 `json:"last"`  // sequence of its last message
	Bytes  int64  `json:"bytes"`
	Leader string `json:"leader"` // name of the NATS server that takes its writes; "" if there is none now

	// Err says why the log could not be read. This is normal for some seconds while its servers choose a
	// leader.
	Err error `json:"-"`
}

// Logs returns the state of all logs, by shard. A log that cannot be read has an Err.
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
