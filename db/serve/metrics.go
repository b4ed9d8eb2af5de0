package serve

import "time"

// note counts a request.
func (s *Server) note(r *request, err error, took time.Duration) {
	if err != nil && r.w.status >= 500 {
		s.opt.Logger.Error("request failed", "method", r.Method, "path", r.URL.Path, "status", r.w.status,
			"error", err, "seconds", took.Seconds())
	}
}
