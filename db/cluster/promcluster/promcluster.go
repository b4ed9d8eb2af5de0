// Package promcluster exports metrics of the nodes and clients of a cluster to Prometheus.
//
//	registry.MustRegister(promcluster.OfNode(node), promcluster.OfClient(client))
//
// It does not export metrics of the databases of a node.
package promcluster

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fddhdb/fddhdb/db/cluster"
)

var shardLabels = []string{"node", "shard"}

// Metrics of a node, one value for each of its shards.
var (
	applied = prometheus.NewDesc("fddhdb_cluster_replica_applied_sequence",
		"The sequence of the log that the replica has applied.", shardLabels, nil)
	behind = prometheus.NewDesc("fddhdb_cluster_replica_behind_messages",
		"Messages of the log that the replica knows of and has not applied.", shardLabels, nil)
	items = prometheus.NewDesc("fddhdb_cluster_replica_items", "Items of the replica.", shardLabels, nil)
	done  = prometheus.NewDesc("fddhdb_cluster_replica_operations_total",
		"Operations that the replica has applied since it was started.", shardLabels, nil)
	problem = prometheus.NewDesc("fddhdb_cluster_replica_problem",
		"1 while something keeps the replica from applying its log.", shardLabels, nil)
)

// Metrics of a client.
var (
	requests = prometheus.NewDesc("fddhdb_cluster_requests_total", "Requests of the client to shards.", nil,
		nil)
	hedges = prometheus.NewDesc("fddhdb_cluster_hedges_total",
		"Requests that went to a second replica as well, as the first took long.", nil, nil)
	retries = prometheus.NewDesc("fddhdb_cluster_retries_total",
		"Requests that were made again, as a node was gone or behind.", nil, nil)
	failed = prometheus.NewDesc("fddhdb_cluster_failed_total", "Requests that no replica has answered.",
		nil, nil)
)

// OfNode returns a collector of the metrics of a node, which is safe for concurrent use.
func OfNode(n *cluster.Node) prometheus.Collector { return ofNode{n} }

type ofNode struct{ node *cluster.Node }

func (o ofNode) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{applied, behind, items, done, problem} {
		ch <- d
	}
}

func (o ofNode) Collect(ch chan<- prometheus.Metric) {
	s := o.node.Status()
	for _, r := range s.Shards {
		send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64) {
			ch <- prometheus.MustNewConstMetric(d, kind, value, s.Node, strconv.Itoa(r.Shard))
		}
		send(applied, prometheus.GaugeValue, float64(r.Applied))
		send(behind, prometheus.GaugeValue, float64(r.Behind))
		send(items, prometheus.GaugeValue, float64(r.Items))
		send(done, prometheus.CounterValue, float64(r.Operations))
		bad := 0.0
		if r.Problem != "" {
			bad = 1
		}
		send(problem, prometheus.GaugeValue, bad)
	}
}

// OfClient returns a collector of the metrics of a client, which is safe for concurrent use.
func OfClient(c *cluster.Client) prometheus.Collector { return ofClient{c} }

type ofClient struct{ client *cluster.Client }

func (o ofClient) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requests, hedges, retries, failed} {
		ch <- d
	}
}

func (o ofClient) Collect(ch chan<- prometheus.Metric) {
	f := o.client.Figures()
	for d, value := range map[*prometheus.Desc]uint64{requests: f.Requests, hedges: f.Hedges,
		retries: f.Retries, failed: f.Failed} {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value))
	}
}
