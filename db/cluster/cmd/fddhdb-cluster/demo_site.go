package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
)

// Size of the demonstration.
const (
	demoServers  = 3
	demoNodes    = 4
	demoShards   = 8
	demoReplicas = 2
	demoCluster  = "demo"
)

// A site has the servers and the nodes of the demonstration, each a process, in a temporary folder.
type site struct {
	dir     string
	servers *natsproc.Group
	nodes   []*nodeProcess
	nc      *nats.Conn
	client  *cluster.Client
}

// A nodeProcess is a node that runs as a process.
type nodeProcess struct {
	name string
	cmd  *exec.Cmd
	in   interface{ Close() error } // its standard input; the node ends when it is closed
	done chan struct{}              // closed when the process is gone
}

// buildSite starts everything and makes the cluster. After an error it leaves nothing running.
func buildSite(ctx context.Context) (s *site, err error) {
	s = &site{}
	defer func() {
		if err != nil {
			if tail := s.logTail(); tail != "" && ctx.Err() == nil {
				err = exit.Failedf("%w\n%s", err, tail)
			}
			s.close()
			s = nil
		}
	}()
	if s.dir, err = os.MkdirTemp("", "fddhdb-demo-"); err != nil {
		return s, err
	}
	if s.servers, err = natsproc.Start(ctx, natsproc.Config{Dir: filepath.Join(s.dir, "nats"), Servers: demoServers}); err != nil {
		return s, err
	}
	for i := range demoNodes {
		s.nodes = append(s.nodes, &nodeProcess{name: fmt.Sprintf("n%d", i+1)})
		if err := s.start(i); err != nil {
			return s, err
		}
	}
	if s.nc, err = cluster.ConnectNATS(strings.Join(s.servers.URLs(), ",")); err != nil {
		return s, err
	}
	var names []string
	for _, n := range s.nodes {
		names = append(names, n.name)
	}
	err = cluster.Create(ctx, s.nc, demoCluster, cluster.CreateOptions{Shards: demoShards, Replicas: demoReplicas, Nodes: names, Servers: demoServers, LogBytes: 256 << 20})
	if err != nil {
		return s, err
	}
	s.client, err = cluster.Connect(ctx, s.nc, demoCluster, cluster.ClientOptions{})
	return s, err
}

// start starts a stopped node.
func (s *site) start(i int) error {
	n := s.nodes[i]
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(s.dir, n.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	n.cmd = exec.Command(self, "node", "--name", n.name, "--dir", filepath.Join(s.dir, n.name), "--cluster", demoCluster,
		"--servers", strings.Join(s.servers.URLs(), ","), "--until-stdin-ends",
		"--user=", "--tls-ca=", "--tls-cert=", "--tls-key=") // the environment's values are for other servers
	n.cmd.Stdout, n.cmd.Stderr = log, log
	natsproc.OwnGroup(n.cmd)
	if n.in, err = n.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := n.cmd.Start(); err != nil {
		return fmt.Errorf("start node %s: %w", n.name, err)
	}
	n.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait() // it may have been killed
		close(done)
	}(n.cmd, n.done)
	return nil
}

// kill ends a node as a power failure would.
func (s *site) kill(i int) {
	n := s.nodes[i]
	_ = n.cmd.Process.Kill() // fails only if it is gone
	<-n.done
}

// settled waits until every replica has applied its whole log, and nothing is wrong.
func (s *site) settled(ctx context.Context) error {
	for {
		why := ""
		logs := s.client.Logs(ctx)
		nodes, err := s.client.Nodes(ctx)
		if err != nil {
			return err
		}
		replicas := 0
		for _, n := range nodes {
			for _, r := range n.Shards {
				replicas++
				for _, l := range logs {
					if l.Shard == r.Shard && (r.Problem != "" || r.Applied < l.Last) {
						why = fmt.Sprintf("node %s, shard %d: at %d of %d: %s", n.Node, r.Shard, r.Applied, l.Last, r.Problem)
					}
				}
			}
		}
		for _, l := range logs {
			if l.Err != nil {
				why = fmt.Sprintf("log of shard %d: %v", l.Shard, l.Err)
			}
		}
		if replicas < demoShards*demoReplicas && why == "" {
			why = fmt.Sprintf("%d of %d replicas are there", replicas, demoShards*demoReplicas)
		}
		if why == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: the cluster has not settled: %s", context.Cause(ctx), why)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// leading returns the server that leads the log of a shard, or -1.
func (s *site) leading(ctx context.Context, shard int) int {
	return s.servers.Index(s.client.Logs(ctx)[shard].Leader)
}

// logTail returns the ends of the nodes' logs, for an error.
func (s *site) logTail() string {
	var b strings.Builder
	for _, n := range s.nodes {
		text, err := os.ReadFile(filepath.Join(s.dir, n.name+".log"))
		if err != nil || len(text) == 0 {
			continue
		}
		fmt.Fprintf(&b, "log of node %s ends with: %s\n", n.name, strings.TrimSpace(string(text[max(0, len(text)-500):])))
	}
	return b.String()
}

// close ends all processes and removes the folder.
func (s *site) close() {
	if s.client != nil {
		_ = s.client.Close() // the connection may be closed
	}
	for _, n := range s.nodes {
		if n.done == nil {
			continue
		}
		_ = n.in.Close()
		select {
		case <-n.done:
		case <-time.After(5 * time.Second):
			_ = n.cmd.Process.Kill()
			<-n.done
		}
	}
	if s.nc != nil {
		s.nc.Close()
	}
	if s.servers != nil {
		s.servers.Close()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// errWrong says that the demonstration has found a broken promise.
var errWrong = errors.New("the cluster has not kept what it promises")
