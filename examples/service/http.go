package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	"github.com/fddhdb/fddhdb/db"
)

const (
	maxBody     = 1 << 20          // bytes in a request
	maxHits     = 1000             // hits in an answer
	maxRequests = 64               // at a time; more are told to come again
	quick       = 5 * time.Second  // limit for all requests but trainings
	slow        = 30 * time.Minute // limit for trainings
)

// handle makes a handler of a function do, which returns the answer or an error. limit
// bounds the time of a request.
func (s *service) handle(limit time.Duration,
	do func(context.Context, *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		default:
			w.Header().Set("Retry-After", "1")
			reply(w, http.StatusServiceUnavailable, map[string]string{"error": "too many requests at a time"})
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if limit > quick { // the timeouts of the server are for quick requests
			connection := http.NewResponseController(w)
			_, _ = connection.SetReadDeadline(time.Time{}), connection.SetWriteDeadline(time.Time{})
		}
		answer, err := do(ctx, r)
		if err != nil {
			code := status(err)
			if code == http.StatusInternalServerError {
				log.Printf("%s %s: %v", r.Method, r.URL.Path, err)
			}
			reply(w, code, map[string]string{"error": err.Error()})
			return
		}
		reply(w, http.StatusOK, answer)
	}
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client may have gone away
}

// status returns the HTTP status of an error.
func status(err error) int {
	is := func(target error) bool { return errors.Is(err, target) }
	switch large := new(http.MaxBytesError); {
	case is(context.DeadlineExceeded), is(context.Canceled), is(db.ErrFailed), is(db.ErrClosed):
		return http.StatusServiceUnavailable
	case is(db.ErrDiskFull):
		return http.StatusInsufficientStorage
	case is(db.ErrNoModel), is(db.ErrBusy):
		return http.StatusConflict
	case is(db.ErrNotFound):
		return http.StatusNotFound
	case is(db.ErrInvalid):
		return http.StatusBadRequest
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusInternalServerError
}

// read reads a request as JSON.
func read(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == io.EOF {
		err = errors.New("it is empty, and has to be an object, such as {}")
	}
	if err == nil && d.More() {
		err = errors.New("there is more behind it")
	}
	if large := new(http.MaxBytesError); err != nil && !errors.As(err, &large) {
		err = fmt.Errorf("%w: the body of the request: %w", db.ErrInvalid, err)
	}
	return err
}
