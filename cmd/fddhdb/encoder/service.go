package encoder

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/fddhdb/fddhdb/db"
)

// A service is a model behind an address: its command is the address, the name of the model, and
// "key=VARIABLE" where a token is needed. The token is in the environment, as a database may be copied. No
// redirect is followed: its user has trusted one address with the texts and the token.
type service struct {
	*Program
	url    *url.URL
	model  string
	key    string // name of the variable of the token; "": none
	client *http.Client
	warm   atomic.Bool // it has answered
}

// Limits of services.
const (
	keptBody = 4 << 10 // bytes of the answer that come with an error
	saidMost = 300     // characters of a message
)

// refusing are the statuses that a service has for a file that is no picture. That of Immich has 500.
var refusing = []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
	http.StatusUnprocessableEntity, http.StatusInternalServerError}

// isURL reports whether a word is an address.
func isURL(word string) bool {
	scheme, _, found := strings.Cut(word, "://")
	return found && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// isImmich reports whether a word is an address of the form that the machine learning of Immich has.
func isImmich(word string) bool {
	u, err := url.Parse(word)
	return isURL(word) && err == nil && strings.HasSuffix(u.Path, "/predict")
}

func hostOf(command []string) string {
	if u, err := url.Parse(command[0]); err == nil && u.Host != "" {
		return u.Host
	}
	return command[0]
}

func findService(p *Program) error {
	s, err := newService(p)
	if err != nil {
		return err
	}
	if p.input() == db.InputFile && !isImmich(p.Command[0]) {
		return fmt.Errorf("%s makes vectors of texts alone: an address for files ends in /predict (Immich)", s.url.Host)
	}
	return s.token(&http.Request{Header: http.Header{}})
}

// newService returns the service of a command.
func newService(p *Program) (*service, error) {
	u, err := url.Parse(p.Command[0])
	switch {
	case err != nil:
		return nil, fmt.Errorf("the address of the encoder: %w", errors.Unwrap(err)) // without the address
	case u.User != nil:
		return nil, fmt.Errorf("the address has a password, which everybody would see who has the database: give the name of an environment variable with the token, as key=VARIABLE")
	case u.Host == "":
		return nil, fmt.Errorf("%q has no host: http://localhost:11434/v1/embeddings is an address", p.Command[0])
	case strings.Trim(u.Path, "/") == "":
		return nil, fmt.Errorf("%s has no path: it ends in /v1/embeddings (OpenAI, Ollama, TEI, vLLM) or /predict (Immich)", p.Command[0])
	}
	s := &service{Program: p, url: u}
	for _, word := range p.Command[1:] {
		key, isKey := strings.CutPrefix(word, "key=")
		switch {
		case isKey && s.key == "" && key != "":
			s.key = key
		case !isKey && s.model == "" && word != "":
			s.model = word
		default:
			return nil, fmt.Errorf("%q behind an address: ADDRESS MODEL [key=VARIABLE] is expected", word)
		}
	}
	if s.model == "" {
		return nil, errors.New("the model is missing: ADDRESS MODEL [key=VARIABLE] is expected")
	}
	s.client = &http.Client{
		Transport:     http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

func (s *service) close() { s.client.CloseIdleConnections() }

// token adds the token to a request.
func (s *service) token(r *http.Request) error {
	if s.key == "" {
		return nil
	}
	token := os.Getenv(s.key)
	if token == "" {
		return fmt.Errorf("the environment variable %s, which is to have the token, is not set", s.key)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// ask sends a request for n inputs and decodes the answer into out. The request has Timeout for each input,
// but not more than Longest, which the first one has as well: the service may have to load the model.
func (s *service) ask(ctx context.Context, n int, kind string, body func() (io.ReadCloser, error), size int64,
	out any) error {
	limit := min(time.Duration(n)*s.Timeout, s.Longest())
	if !s.warm.Load() {
		limit = s.Longest()
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := func() error {
		first, err := body()
		if err != nil {
			return err
		}
		r, err := http.NewRequestWithContext(timed, http.MethodPost, s.url.String(), first)
		if err != nil {
			return errors.Join(err, first.Close())
		}
		r.GetBody, r.ContentLength = body, size // for a connection that has ended meanwhile
		r.Header.Set("Content-Type", kind)
		r.Header.Set("Accept", "application/json")
		if err := s.token(r); err != nil {
			return errors.Join(err, first.Close())
		}
		resp, err := s.client.Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		return s.read(resp, out)
	}()
	switch {
	case err == nil:
		s.warm.Store(true)
		return nil
	case context.Cause(ctx) == db.ErrClosed:
		return db.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case timed.Err() != nil:
		return s.failed(Late, fmt.Errorf("no answer after %v", limit), "")
	}
	if at, is := errors.AsType[*url.Error](err); is {
		err = at.Err // the address is known
	}
	return s.failed(Failed, err, "")
}

// read decodes an answer.
func (s *service) read(resp *http.Response, out any) error {
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, keptBody)) // the status matters
		err := fmt.Errorf("status %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
		if to := resp.Header.Get("Location"); resp.StatusCode/100 == 3 && to != "" {
			return fmt.Errorf("%w: it redirects to %s, which you have not trusted: store that address", err,
				shortened(to))
		}
		if text := complaint(body); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
		if s.input() == db.InputFile && slices.Contains(refusing, resp.StatusCode) {
			err = &refusal{s.url.Host + ": " + err.Error()}
		}
		return err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxVectorBytes+1))
	switch {
	case err != nil:
		return fmt.Errorf("its answer ended early: %w", err)
	case len(body) > maxVectorBytes:
		return fmt.Errorf("its answer has more than %d MiB", maxVectorBytes>>20)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("no vectors in its answer %q: %w", shortened(string(body[:min(len(body), 60)])), err)
	}
	return nil
}

// complaint returns what a service says of an error: {"error": "..."}, {"error": {"message": "..."}},
// {"detail": "..."}, {"message": "..."} or plain text. A page of HTML says nothing.
func complaint(body []byte) string {
	var form struct {
		Error           json.RawMessage
		Detail, Message any
	}
	text := string(body)
	if json.Unmarshal(body, &form) == nil {
		var nested struct{ Message string }
		var plain string
		switch {
		case json.Unmarshal(form.Error, &plain) == nil:
			text = plain
		case json.Unmarshal(form.Error, &nested) == nil:
			text = nested.Message
		case form.Detail != nil:
			text = fmt.Sprint(form.Detail)
		case form.Message != nil:
			text = fmt.Sprint(form.Message)
		}
	}
	if strings.HasPrefix(strings.TrimSpace(text), "<") {
		return ""
	}
	return shortened(text)
}

// shortened returns a message of a stranger as a short line.
func shortened(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) > saidMost {
		return string(runes[:saidMost]) + "..."
	}
	return string(runes)
}

// inMemory returns a body of a request that can be read again.
func inMemory(b []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
}
