package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
)

// Errors between a client and a database. The errors of a database itself are in package db.
var (
	// ErrUnsupported says that this database cannot do what was asked, such as a cluster.
	ErrUnsupported = errors.ErrUnsupported

	// ErrUnauthorized says that a token is missing or unknown, ErrForbidden that it does not allow this.
	ErrUnauthorized = errors.New("fddhdb: not authorized")
	ErrForbidden    = errors.New("fddhdb: forbidden")

	// ErrTooLarge says that a request or its answer is beyond a limit of the server, ErrOverloaded that the
	// server has too much to do now.
	ErrTooLarge   = errors.New("fddhdb: too large")
	ErrOverloaded = errors.New("fddhdb: overloaded")

	// ErrClosing says that the server ends. It has not carried out the request.
	ErrClosing = errors.New("fddhdb: server is closing")

	// ErrEncoder says that the program has failed which makes vectors of texts or files.
	ErrEncoder = errors.New("fddhdb: encoder has failed")

	// ErrPrecondition says that an item has changed since its ETag was read.
	ErrPrecondition = errors.New("fddhdb: item has changed")

	// ErrUnknown says that nobody knows whether a change was made, as the connection has failed.
	ErrUnknown = errors.New("fddhdb: it is not known whether this was written")
)

// A kind is a kind of error: what it is in Go, in a problem and as a status.
type kind struct {
	err    error
	code   string
	status int
}

// kinds are the kinds of errors. An error is of the first one that it is.
var kinds = []kind{
	{ErrUnauthorized, "unauthorized", http.StatusUnauthorized},
	{ErrForbidden, "forbidden", http.StatusForbidden},
	{ErrTooLarge, "too_large", http.StatusRequestEntityTooLarge},
	{ErrOverloaded, "overloaded", http.StatusTooManyRequests},
	{ErrClosing, "closing", http.StatusServiceUnavailable},
	{ErrPrecondition, "precondition_failed", http.StatusPreconditionFailed},
	{ErrEncoder, "encoder", http.StatusBadGateway},
	{ErrUnsupported, "unsupported", http.StatusNotImplemented},
	{ErrUnknown, "unknown", http.StatusGatewayTimeout},
	{db.ErrConflict, "conflict", http.StatusConflict},
	{db.ErrNotFound, "not_found", http.StatusNotFound},
	{db.ErrExists, "exists", http.StatusConflict},
	{db.ErrReadOnly, "read_only", http.StatusForbidden},
	{db.ErrNoModel, "no_model", http.StatusConflict},
	{db.ErrBusy, "busy", http.StatusConflict},
	{db.ErrDiskFull, "disk_full", http.StatusInsufficientStorage},
	{db.ErrFull, "full", http.StatusInsufficientStorage},
	{db.ErrFailed, "failed", http.StatusInternalServerError},
	{db.ErrCorrupt, "corrupt", http.StatusInternalServerError},
	{db.ErrFormat, "format", http.StatusBadRequest},
	{db.ErrNotDatabase, "not_database", http.StatusBadRequest},
	{db.ErrLocked, "locked", http.StatusConflict},
	{db.ErrClosed, "closing", http.StatusServiceUnavailable},
	{db.ErrInvalid, "invalid", http.StatusBadRequest},
	{context.Canceled, "cancelled", 499},
	{context.DeadlineExceeded, "timeout", http.StatusGatewayTimeout},
}

// A Problem is an error as JSON, by RFC 9457. Code is a short name for programs. The other members repeat
// the fields of typed errors of package db.
type Problem struct {
	Type   string `json:"type" doc:"about:blank: the code says what it is"`
	Title  string `json:"title" doc:"the status in words"`
	Status int    `json:"status"`
	Detail string `json:"detail" doc:"what is wrong, where, and what to do"`
	Code   string `json:"code" doc:"name of the kind of error, for programs"`

	Item     *string `json:"item,omitempty" doc:"key of the item that the error is about"`
	Column   int     `json:"column,omitempty" doc:"of where, from 1"`
	Reason   string  `json:"reason,omitempty" doc:"what is wrong there"`
	Modality string  `json:"modality,omitempty" doc:"whose vector has the wrong length"`
	Got      int     `json:"got,omitempty" doc:"numbers of the vector, or format that was found"`
	Want     int     `json:"want,omitempty" doc:"numbers that belong there, or format that is supported"`
	Stored   int     `json:"stored,omitempty" doc:"items that are stored, of an import that has failed"`

	Needed  int64 `json:"needed,omitempty" doc:"bytes that were missing on the disk"`
	Free    int64 `json:"free,omitempty" doc:"bytes that are free on the disk"`
	Reserve int64 `json:"reserve,omitempty" doc:"bytes that are kept free"`
}

// NewProblem returns the problem of an error, which is not nil.
func NewProblem(err error) *Problem {
	p := &Problem{Type: "about:blank", Status: http.StatusInternalServerError, Code: "internal",
		Detail: err.Error()}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			p.Code, p.Status = k.code, k.status
			break
		}
	}
	var (
		item      *db.ItemError
		where     *db.WhereError
		dimension *db.DimensionError
		format    *db.FormatError
		full      *db.DiskFullError
		partly    *PartlyError
	)
	if errors.As(err, &item) {
		p.Item = &item.Key
	}
	switch {
	case errors.As(err, &where):
		p.Column, p.Reason = where.Column, where.Reason
	case errors.As(err, &dimension):
		p.Modality, p.Got, p.Want = dimension.Modality, dimension.Got, dimension.Want
	case errors.As(err, &format):
		p.Got, p.Want = format.Found, format.Supported
	case errors.As(err, &full):
		p.Needed, p.Free, p.Reserve = full.Needed, full.Free, full.Reserve
	}
	if errors.As(err, &partly) {
		p.Stored = partly.Stored
	}
	p.Title = http.StatusText(p.Status)
	if p.Title == "" {
		p.Title = "Client Closed Request"
	}
	return p
}

// Known reports whether an error is of a kind that has a name, and so is none of the connection.
func Known(err error) bool {
	return slices.ContainsFunc(kinds, func(k kind) bool { return errors.Is(err, k.err) })
}

// Error returns the text of the error.
func (p *Problem) Error() string {
	if strings.HasPrefix(p.Detail, "fddhdb: ") {
		return p.Detail
	}
	return "fddhdb: " + p.Detail
}

// Err returns the error that the problem stands for: errors.Is and errors.As find in it what they found in
// the error of which the problem was made, and its text is the same.
func (p *Problem) Err() error {
	e := &remoteError{Problem: p}
	for _, k := range kinds {
		if k.code == p.Code {
			e.causes = append(e.causes, k.err)
			break
		}
	}
	switch {
	case p.Column > 0:
		e.causes = append(e.causes, &db.WhereError{Column: p.Column, Reason: p.Reason})
	case p.Modality != "":
		e.causes = append(e.causes, &db.DimensionError{Modality: p.Modality, Got: p.Got, Want: p.Want})
	case p.Code == "format":
		e.causes = append(e.causes, &db.FormatError{Where: "the database", Found: p.Got, Supported: p.Want})
	case p.Code == "disk_full":
		e.causes = append(e.causes, &db.DiskFullError{Needed: p.Needed, Free: p.Free, Reserve: p.Reserve})
	}
	if p.Item != nil {
		e.causes = append(e.causes, &db.ItemError{Key: *p.Item, Err: errors.New(p.Detail)})
	}
	if p.Stored > 0 {
		e.causes = append(e.causes, &PartlyError{Stored: p.Stored, Err: errors.New(p.Detail)})
	}
	return e
}

// A remoteError is an error of a server.
type remoteError struct {
	*Problem
	causes []error
}

func (e *remoteError) Unwrap() []error { return e.causes }

// A PartlyError is the error of an import that has stored some of its items, the first ones.
type PartlyError struct {
	Stored int // items
	Err    error
}

// Error says how many items are stored.
func (e *PartlyError) Error() string {
	return fmt.Sprintf("%v; the first %d items are stored", e.Err, e.Stored)
}

// Unwrap returns the error that ended the import.
func (e *PartlyError) Unwrap() error { return e.Err }
