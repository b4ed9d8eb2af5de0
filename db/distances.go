package db

// observe counts the answer to a query, unless it goes on behind a cursor or starts from
// an item, which finds itself.
func (s *searcher) observe(r *Result) {
	if len(r.Hits) == 0 || s.q.After != "" || s.q.Key != "" {
		return
	}
	nearest := r.Hits[0].Distance
	for _, h := range r.Hits[1:] { // which some orders do not put first
		nearest = min(nearest, h.Distance)
	}
	s.cv.Distances[nearest].Add(1)
}
