package promfddhdb

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/event"
)

// A Collector collects the metrics of one database. If the database is closed, or its
// Stats fail, there is only fddhdb_up, with the value 0. A Collector is safe for
// concurrent use.
type Collector struct {
	stats func() (*db.Stats, error)
	descs map[string]*prometheus.Desc
}

// NewCollector returns a collector of the metrics of a database, whose figures stats returns, as DB.Stats
// does. All metrics have the given labels; nil means none. If a registry has collectors of several databases,
// these labels have to tell them apart.
func NewCollector(stats func() (*db.Stats, error), labels prometheus.Labels) *Collector {
	c := &Collector{stats: stats, descs: map[string]*prometheus.Desc{}}
	for _, m := range metrics {
		c.descs[m.name] = prometheus.NewDesc(m.name, m.help, m.labels, labels)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range c.descs {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	s, err := c.stats()
	up := metric{"fddhdb_up", gauge, "", nil, nil}
	if err != nil {
		up.send(c, ch, 0)
		return
	}
	up.send(c, ch, 1)
	for i := range metrics {
		m := &metrics[i]
		if m.collect != nil {
			m.collect(s, func(value any, labels ...string) { m.send(c, ch, value, labels...) })
		}
	}
}

// send sends a value of the metric: a number, or event.Latencies for a histogram.
func (m *metric) send(c *Collector, ch chan<- prometheus.Metric, value any, labels ...string) {
	desc := c.descs[m.name]
	switch x := value.(type) {
	case *event.Latencies:
		buckets := make(map[float64]uint64, event.LatencyBuckets-1)
		within := uint64(0)
		for i := range event.LatencyBuckets - 1 {
			within += x.Buckets[i]
			buckets[event.LatencyBound(i).Seconds()] = within
		}
		ch <- prometheus.MustNewConstHistogram(desc, x.Count, x.Sum.Seconds(), buckets, labels...)
	case bool:
		m.send(c, ch, map[bool]int{true: 1}[x], labels...)
	case int:
		ch <- prometheus.MustNewConstMetric(desc, m.kind.value(), float64(x), labels...)
	case int64:
		ch <- prometheus.MustNewConstMetric(desc, m.kind.value(), float64(x), labels...)
	case uint64:
		ch <- prometheus.MustNewConstMetric(desc, m.kind.value(), float64(x), labels...)
	case float64:
		ch <- prometheus.MustNewConstMetric(desc, m.kind.value(), x, labels...)
	}
}
