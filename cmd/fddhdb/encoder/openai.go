package encoder

import (
	"context"
	"encoding/json"
	"fmt"
)

// openAI asks for embeddings in the form of OpenAI, which Ollama, LM Studio, TEI, vLLM and others have.
type openAI struct{ *service }

// openAIBatch is the largest number of texts in a request.
const openAIBatch = 64

func startOpenAI(p *Program, _ <-chan struct{}) (maker, error) {
	s, err := newService(p)
	return openAI{s}, err
}

func (s openAI) answers(ctx context.Context, dim int, inputs []string, _ bool) ([]answer, error) {
	all := make([]answer, 0, len(inputs))
	for len(all) < len(inputs) {
		some, err := s.batch(ctx, dim, inputs[len(all):min(len(all)+openAIBatch, len(inputs))])
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// batch sends one request.
func (s openAI) batch(ctx context.Context, dim int, texts []string) ([]answer, error) {
	body, err := json.Marshal(struct {
		Model  string   `json:"model"`
		Input  []string `json:"input"`
		Format string   `json:"encoding_format"`
	}{s.model, texts, "float"})
	if err != nil {
		return nil, err
	}
	var out struct {
		Data []struct {
			Index     *int
			Embedding numbers
		}
	}
	if err := s.ask(ctx, len(texts), "application/json", inMemory(body), int64(len(body)), &out); err != nil {
		return nil, err
	}
	if len(out.Data) != len(texts) {
		return nil, s.failed(Failed, fmt.Errorf("%d vectors for %d texts", len(out.Data), len(texts)), "")
	}
	all := make([]answer, len(texts))
	for i, d := range out.Data {
		if d.Index != nil {
			i = *d.Index
		}
		if i < 0 || i >= len(all) || all[i].Dense != nil {
			return nil, s.failed(Failed, fmt.Errorf("index %d, twice or beyond the %d texts", i, len(texts)), "")
		}
		all[i].Dense = append([]float32{}, d.Embedding...)
		if err := all[i].Check(dim); err != nil {
			all[i].err = s.failed(Failed, fmt.Errorf("it answers with %w", err), "")
		}
	}
	return all, nil
}
