package checker

import (
	"fmt"
	"time"

	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
)

var sprintf = fmt.Sprintf

// A Rule is a guarantee that a Violation breaks.
type Rule string

const (
	Lost     Rule = "an acknowledged write is not in the log"
	Twice    Rule = "a write has been applied twice"
	Happened Rule = "a write that has failed for certain has been applied"
	Refusal  Rule = "a write was refused whose condition holds, or succeeded though it does not"
	Told     Rule = "the outcome of a write was told wrongly"
	Order    Rule = "a write stands before one that was acknowledged before it began"
	Stale    Rule = "a read shows less than its session has seen"
	Early    Rule = "a read shows what is written later"
	Torn     Rule = "a read shows a state that there has never been"
	Foreign  Rule = "the log has what nobody has written"
)

// A Violation is a broken rule, with the evidence.
type Violation struct {
	Rule Rule
	Text string
}

func (v Violation) String() string { return string(v.Rule) + ": " + v.Text }

// A Finding is the result of Check.
type Finding struct {
	Violations []Violation
	Final      []map[string]string // values by key at the end of each log
	Reads      int                 // reads compared with the logs
	Writes     int                 // writes applied in the logs
}

// Check compares a history with the complete logs of all shards. shardOf returns the shard of a key. It takes
// about n log n time in the number of operations.
func Check(ops []Op, logs [][]apply.Message, shardOf func(key string) int) *Finding {
	c := &check{ops: ops, shardOf: shardOf, found: &Finding{}}
	begins := map[string]time.Duration{}
	for i := range ops {
		if o := &ops[i]; o.Kind.Writes() {
			begins[o.Value] = o.Begin
		}
	}
	for shard, log := range logs {
		t := replay(shard, log, func(value string) (time.Duration, bool) { b, ok := begins[value]; return b, ok })
		c.logs = append(c.logs, t)
		c.found.Final = append(c.found.Final, t.final())
		for _, text := range t.odd {
			c.violated(Foreign, "%s", text)
		}
	}
	c.writes()
	c.order()
	c.reads()
	return c.found
}

// A check is a run of Check.
type check struct {
	ops     []Op
	logs    []*timeline
	shardOf func(key string) int
	seqs    []uint64 // by operation: the message that decided a write; 0: none
	found   *Finding
}

func (c *check) violated(r Rule, format string, args ...any) {
	c.found.Violations = append(c.found.Violations, Violation{r, sprintf(format, args...)})
}
