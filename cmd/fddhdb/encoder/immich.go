package encoder

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"os"
	"path/filepath"
	"sync"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/picture"
	"github.com/fddhdb/fddhdb/db"
)

// immich asks the machine learning service of Immich for the vectors of CLIP, of texts or of pictures: one
// in a request.
type immich struct{ *service }

// immichAtOnce is the number of requests at a time.
const immichAtOnce = 4

func startImmich(p *Program, _ <-chan struct{}) (maker, error) {
	s, err := newService(p)
	return immich{s}, err
}

// answers implements maker. After an error, unless a picture was refused, it begins no further request.
func (s immich) answers(ctx context.Context, dim int, inputs []string, _ bool) ([]answer, error) {
	all := make([]answer, len(inputs))
	var (
		mu    sync.Mutex
		begun int
		first error // that is of no input
		group sync.WaitGroup
	)
	next := func() int {
		mu.Lock()
		defer mu.Unlock()
		begun++
		return begun - 1
	}
	for range min(immichAtOnce, len(inputs)) {
		group.Go(func() {
			for i := next(); i < len(inputs); i = next() {
				x, err := s.one(ctx, inputs[i])
				if err == nil {
					if err = x.Check(dim); err != nil {
						err = s.failed(Failed, fmt.Errorf("it answers with %w", err), "")
					}
				}
				all[i].Vector = x
				if err == nil {
					continue
				}
				if errors.As(err, &all[i].err) && all[i].err.Reason == Refused {
					continue
				}
				mu.Lock()
				begun = len(inputs)
				if all[i].err == nil && first == nil {
					first = err
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return all, first
}

// one sends one request. Recent versions answer with an array within a string.
func (s immich) one(ctx context.Context, input string) (Vector, error) {
	body, kind, size, err := s.form(input)
	if err != nil {
		return Vector{}, s.failed(Failed, err, "")
	}
	var out struct{ Clip numbers }
	if err := s.ask(ctx, 1, kind, body, size, &out); err != nil {
		return Vector{}, err
	}
	if out.Clip == nil {
		return Vector{}, s.failed(Failed, errors.New(`its answer has no "clip"`), "")
	}
	return Vector{Dense: out.Clip}, nil
}

// form returns the form of a request, and its type and size. A picture is read as it is sent.
func (s immich) form(input string) (body func() (io.ReadCloser, error), kind string, size int64, err error) {
	part := "textual"
	if s.input() == db.InputFile {
		part = "visual"
	}
	entries, err := json.Marshal(map[string]any{"clip": map[string]any{part: map[string]any{
		"modelName": s.model, "options": struct{}{}}}})
	if err != nil {
		return nil, "", 0, err
	}
	var b bytes.Buffer // writes to it do not fail
	w := multipart.NewWriter(&b)
	_ = w.WriteField("entries", string(entries))
	if s.input() == db.InputText {
		_ = w.WriteField("text", input)
		_ = w.Close()
		return inMemory(b.Bytes()), w.FormDataContentType(), int64(b.Len()), nil
	}
	f, size, err := openRegular(input)
	if err != nil { // of this input alone
		return nil, "", 0, &refusal{fmt.Sprintf("%s: %v", filepath.Base(input), picture.Reason(err))}
	}
	if err := f.Close(); err != nil { // it is opened again, maybe more than once
		return nil, "", 0, err
	}
	_, _ = w.CreateFormFile("image", "image") // the name of the file is nobody's business
	at := b.Len()
	_ = w.Close()
	head, tail := b.Bytes()[:at], b.Bytes()[at:]
	return func() (io.ReadCloser, error) {
		f, err := os.Open(input)
		if err != nil {
			return nil, err
		}
		return struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(head), f, bytes.NewReader(tail)), f}, nil
	}, w.FormDataContentType(), size + int64(b.Len()), nil
}
