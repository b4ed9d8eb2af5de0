package s3

import (
	"context"
	"crypto/tls"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"
)

// failed adds to the error of a request the operation and advice; nil stays nil. The
// end of a context stays as it is.
func (s *Store) failed(ctx context.Context, doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	var answer minio.ErrorResponse
	text := strings.TrimSuffix(err.Error(), ".")
	if errors.As(err, &answer) && answer.Code != "" && !strings.Contains(text, answer.Code) {
		text += " (" + answer.Code + ")"
	}
	if advice := s.advice(answer, err); advice != "" {
		text += ": " + advice
	}
	return &requestError{fmt.Sprintf("fddhdb: %s: %s: %s", s, doing, text), err}
}

// A requestError is an error of the client in other words.
type requestError struct {
	text string
	err  error
}

func (e *requestError) Error() string { return e.text }
func (e *requestError) Unwrap() error { return e.err }

// advice returns advice for an error; "" if there is none.
func (s *Store) advice(answer minio.ErrorResponse, err error) string {
	switch answer.Code {
	case minio.NoSuchBucket:
		return "create the bucket at " + s.o.Endpoint + " first, or correct the name"
	case minio.InvalidAccessKeyID, "XAdminUserNotFound":
		return "check the credentials, which come from " + s.source + ", and that the endpoint is " +
			s.o.Endpoint
	case minio.SignatureDoesNotMatch:
		return "check the secret key, which comes from " + s.source
	case minio.AccessDenied, minio.AllAccessDisabled:
		return "the credentials, which come from " + s.source +
			", need s3:ListBucket on the bucket, and s3:GetObject, s3:PutObject, " +
			"s3:DeleteObject and s3:AbortMultipartUpload on what is in it"
	case "ExpiredToken", "InvalidToken", "TokenRefreshRequired":
		return "get new credentials: those from " + s.source + " were for a time only"
	case minio.RequestTimeTooSkewed, "RequestExpired":
		return "set the clock of this machine"
	case minio.AuthorizationHeaderMalformed, minio.InvalidRegion, "PermanentRedirect", "TemporaryRedirect":
		if answer.Region != "" {
			return "the bucket is in the region " + answer.Region + ": add region=" + answer.Region +
				" to the URL"
		}
		return "the bucket is in another region: add region=REGION to the URL"
	case "QuotaExceeded", "InsufficientCapacity", "XMinioStorageFull", "StorageFull":
		return "make room: prune old backups, or enlarge what the store may take"
	case minio.BadDigest, minio.InvalidDigest, minio.XAmzContentSHA256Mismatch, minio.IncompleteBody:
		return "the bytes were damaged on the way and refused; nothing was stored: try again"
	case minio.InvalidObjectState:
		return "the object has been archived: bring it back, and take the bucket out of the rule that archives"
	case minio.PreconditionFailed:
		return "the object was replaced while it was read: try again"
	}
	if answer.StatusCode >= 500 || answer.Code == "SlowDown" || answer.Code == "RequestTimeout" {
		return fmt.Sprintf("the server cannot do it now, in %d tries: try again later", s.o.Tries)
	}
	return s.networkAdvice(err)
}

// networkAdvice returns advice for a request that no S3 server has answered.
func (s *Store) networkAdvice(err error) string {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var dial *net.OpError
	var notXML *xml.SyntaxError
	text := err.Error()
	switch {
	case errors.As(err, &dns):
		return "check the endpoint " + s.o.Endpoint + ", and the network"
	case errors.As(err, &certificate):
		return "if the server has a certificate of your own, name the file of its authority in SSL_CERT_FILE"
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return "the server has no TLS: if that is meant to be, give endpoint=http://" + s.o.host
	case strings.Contains(text, "HTTP request to an HTTPS server"):
		return "give endpoint=https://" + s.o.host
	case errors.As(err, &dial) && dial.Op == "dial":
		return "check that a server runs at " + s.o.Endpoint + ", and the network"
	case errors.As(err, &notXML), errors.Is(err, io.EOF), errors.Is(err, errPage),
		strings.Contains(text, "expected element type"):
		return "check that " + s.o.Endpoint + " is an S3 server"
	}
	return ""
}

// errPage is about a web page in place of an answer.
var errPage = errors.New("a web page comes in place of an answer")

// noPages refuses web pages, such as the login page of a network: the client would take
// one for an empty list of objects.
type noPages struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t noPages) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(r)
	if err == nil && answer.StatusCode < 300 && strings.HasPrefix(answer.Header.Get("Content-Type"),
		"text/html") {
		_ = answer.Body.Close()
		return nil, errPage
	}
	return answer, err
}
