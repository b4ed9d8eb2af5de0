package encoder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/fddhdb/fddhdb/db"
)

// A staticModel is a model of model2vec: a vector for each token, and their mean for a text. Its command is
// "model2vec DIR", where DIR has the files that model2vec saves.
type staticModel struct {
	*wordPiece
	vectors   *tensor // by row
	weights   *tensor // of tokens; nil: all 1
	mapping   *tensor // from tokens to rows of vectors; nil: the same
	normalize bool    // to the length 1
	file      *os.File
}

// maxModelText bounds the files of a model that are text.
const maxModelText = 64 << 20

func isModel2vec(word string) bool { return word == "model2vec" }

func findModel2vec(p *Program) error {
	if p.input() != db.InputText {
		return errors.New("model2vec makes vectors of texts alone")
	}
	m, err := openModel(p)
	if err != nil {
		return err
	}
	return m.file.Close()
}

func startModel2vec(p *Program, _ <-chan struct{}) (maker, error) {
	m, err := openModel(p)
	if err != nil {
		return nil, err
	}
	return &function{p, m.vector, func() { _ = m.file.Close() }}, nil // it was only read
}

// openModel opens the model of a command.
func openModel(p *Program) (*staticModel, error) {
	if len(p.Command) != 2 {
		return nil, errors.New("model2vec DIR is expected, where DIR has model.safetensors, tokenizer.json and config.json")
	}
	dir := p.Command[1]
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(p.Dir, dir)
	}
	var config struct{ Normalize *bool }
	text, err := readText(filepath.Join(dir, "config.json"))
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, "config.json"), err)
	}
	m := &staticModel{normalize: or(config.Normalize, false)}
	if text, err = readText(filepath.Join(dir, "tokenizer.json")); err == nil {
		m.wordPiece, err = readWordPiece(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, "tokenizer.json"), err)
	}
	path := filepath.Join(dir, "model.safetensors")
	f, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	if err := m.read(f, size); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	m.file = f
	return m, nil
}

// read reads which tensors there are.
func (m *staticModel) read(file io.ReaderAt, size int64) error {
	all, err := readTensors(file, size)
	if err != nil {
		return err
	}
	m.vectors, m.weights, m.mapping = all["embeddings"], all["weights"], all["mapping"]
	if m.vectors == nil || m.vectors.cols > maxModelDim {
		return fmt.Errorf("no matrix %q of up to %d columns, as model2vec saves", "embeddings", maxModelDim)
	}
	last := 0
	for _, i := range m.vocabulary {
		if last = max(last, i); i < 0 {
			return errors.New("the tokenizer has a token with a number below 0")
		}
	}
	for name, t := range map[string]*tensor{"weights": m.weights, "mapping": m.mapping} {
		if t != nil && (t.cols != 1 || t.rows <= last) {
			return fmt.Errorf("tensor %q has %d x %d numbers, and the tokenizer has %d tokens", name, t.rows,
				t.cols, last+1)
		}
	}
	if m.mapping == nil && m.vectors.rows <= last {
		return fmt.Errorf("%d vectors for the %d tokens of the tokenizer", m.vectors.rows, last+1)
	}
	return nil
}

// maxModelDim bounds the dimensions of a model.
const maxModelDim = 1 << 16

// vector returns the mean of the vectors of the tokens of a text.
func (m *staticModel) vector(text string) (Vector, error) {
	tokens := m.tokens(text)
	if len(tokens) == 0 {
		return Vector{}, &refusal{fmt.Sprintf("the model knows no word of %.80q", text)}
	}
	sum, row := make([]float64, m.vectors.cols), make([]float64, m.vectors.cols)
	for _, token := range tokens {
		weight, at := []float64{1}, []float64{float64(token)}
		if m.weights != nil {
			if err := m.weights.row(token, weight); err != nil {
				return Vector{}, err
			}
		}
		if m.mapping != nil {
			if err := m.mapping.row(token, at); err != nil {
				return Vector{}, err
			}
		}
		if err := m.vectors.row(int(at[0]), row); err != nil {
			return Vector{}, err
		}
		for i, x := range row {
			sum[i] += weight[0] * x
		}
	}
	scale := 1 / float64(len(tokens))
	if m.normalize {
		squares := 0.
		for _, x := range sum {
			squares += x * x
		}
		if squares > 0 {
			scale = 1 / math.Sqrt(squares)
		}
	}
	x := make([]float32, len(sum))
	for i, v := range sum {
		if x[i] = float32(v * scale); x[i]-x[i] != 0 {
			return Vector{}, fmt.Errorf("the model has NaN or infinity for %.80q", text)
		}
	}
	return Vector{Dense: x}, nil
}

// readText reads a file of text of a model.
func readText(path string) ([]byte, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > maxModelText {
		return nil, fmt.Errorf("%d bytes: %d MiB are possible", size, maxModelText>>20)
	}
	return io.ReadAll(io.LimitReader(f, maxModelText))
}

// openRegular opens a file that is no device, which could block.
func openRegular(path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, 0, err
	}
	f, err := os.Open(path)
	return f, info.Size(), err
}
