package serve

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/fddhdb/fddhdb/contrib/promfddhdb"
	"github.com/fddhdb/fddhdb/db"
)

// metrics are the figures of a server, for Prometheus.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	working  prometheus.GaugeFunc
}

// newMetrics returns the metrics of the server, and of its databases.
func (s *Server) newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fddhdb_http_requests_total",
			Help: "Requests that were answered, by path and status."}, []string{"method", "path", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "fddhdb_http_request_seconds",
			Help:    "Time of requests, by path; streams and jobs are not in it.",
			Buckets: prometheus.ExponentialBuckets(.0001, 2.5, 14)}, []string{"method", "path"}),
		working: prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "fddhdb_http_requests_working",
			Help: "Requests that work now."}, func() float64 { return float64(len(s.places)) }),
	}
	m.registry.MustRegister(m.requests, m.seconds, m.working)
	for name, d := range s.databases {
		stats := func() (*db.Stats, error) {
			ctx, cancel := context.WithTimeout(context.Background(), s.opt.Timeout)
			defer cancel()
			return d.Stats(ctx)
		}
		m.registry.MustRegister(promfddhdb.NewCollector(stats, prometheus.Labels{"database": name}))
	}
	return m
}

// registerMetrics adds the route of the metrics, which name collections and so need a token for all.
func (s *Server) registerMetrics(t *router) {
	o := handle(t, "GET", "/metrics", Read, "Figures for Prometheus",
		func(context.Context, *request, *none) (*none, error) { return nil, nil })
	o.produces, o.status = []string{"text/plain"}, http.StatusOK
	h := promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{})
	o.run = func(_ context.Context, r *request) error {
		h.ServeHTTP(r.w, r.Request)
		return nil
	}
}

// note counts a request.
func (s *Server) note(r *request, err error, took time.Duration) {
	path := "other"
	if r.route != nil {
		path = r.route.path
		if !r.route.untimed && !r.route.job {
			s.metrics.seconds.WithLabelValues(r.route.method, path).Observe(took.Seconds())
		}
	}
	method := r.Method
	if r.route == nil {
		method = "other"
	}
	s.metrics.requests.WithLabelValues(method, path, strconv.Itoa(r.w.status)).Inc()
	if err != nil && r.w.status == http.StatusInternalServerError {
		s.opt.Logger.Error("request failed", "method", r.Method, "path", r.URL.Path, "status", r.w.status,
			"error", err, "seconds", took.Seconds())
	}
}
