package natsproc_test

import (
	"testing"

	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
	"github.com/fddhdb/fddhdb/db/cluster/internal/netproxy"
)

// routes is a proxy for each ordered pair of servers.
type routes map[[2]int]*netproxy.Proxy

// via is a Config.RouteVia.
func (r routes) via(t *testing.T) func(from, to int, addr string) (string, error) {
	return func(from, to int, addr string) (string, error) {
		p, err := netproxy.Listen(addr)
		if err != nil {
			return "", err
		}
		t.Cleanup(func() { p.Close() })
		r[[2]int{from, to}] = p
		return p.Addr(), nil
	}
}

// around calls do for each proxy from or to the server.
func (r routes) around(server int, do func(*netproxy.Proxy)) {
	for pair, p := range r {
		if pair[0] == server || pair[1] == server {
			do(p)
		}
	}
}

// The leader is cut off from the two others. It must not acknowledge anything,
// they must elect another leader, and after the partition all three must agree.
func TestPartition(t *testing.T) {
	t.Parallel()
	r := routes{}
	g := start(t, natsproc.Config{RouteVia: r.via(t)})
	all := client(t, g, 0, 1, 2)
	createLog(t, all)
	publish(t, all, 50)

	lonely := leader(t, g, all)
	minority, majority := client(t, g, lonely), client(t, g, others(lonely)...)
	publish(t, minority, 1)

	r.around(lonely, (*netproxy.Proxy).Cut)
	refused := func() {
		t.Helper()
		if tryPublish(minority) == nil {
			t.Error("a leader without a majority acknowledged a message")
		}
	}
	refused()
	publishAgain(t, majority)
	publish(t, majority, 50)
	refused()

	r.around(lonely, (*netproxy.Proxy).Heal)
	if err := g.WaitReady(within(t, election)); err != nil {
		t.Fatal(err)
	}
	publishAgain(t, minority)
	eventually(t, election, func() error { return caughtUp(all) })
	if got := messages(t, all); got < 103 {
		t.Errorf("the log holds %d messages of 103 that were acknowledged", got)
	}
}
