package encoder

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"image"
	"image/png"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

// modelled returns the vector of a text by a stand-in for a model. As in real models, all vectors share a
// common part.
func modelled(model uint64, text string, dim int) []float32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // it cannot fail
	common, own := rand.New(rand.NewPCG(model, 0)), rand.New(rand.NewPCG(model, h.Sum64()))
	x := make([]float32, dim)
	for i := range x {
		x[i] = float32(common.NormFloat64() + own.NormFloat64())
	}
	return x
}

// answersOf returns the answers of a model to the probes, changed by f.
func answersOf(model uint64, dim int, f func(x float32) float32) (all []answer) {
	for _, text := range probes {
		x := modelled(model, text, dim)
		for i := range x {
			x[i] = f(x[i])
		}
		all = append(all, answer{Vector: Vector{Dense: x}})
	}
	return all
}

// A fingerprint tells models of the same dimensions apart, and is the same for one whose numbers are rounded,
// quantised to few bits, of another length, or sparse.
func TestFingerprint(t *testing.T) {
	p := Program{Modality: "text", Command: []string{"x"}}
	of := func(all []answer) []byte {
		t.Helper()
		f, err := p.fingerprint(all)
		check(t, err)
		if len(f) != fingerprintBytes {
			t.Fatalf("%d bytes", len(f))
		}
		return f
	}
	same := func(x float32) float32 { return x }
	for _, dim := range []int{2, 64, 384, 4096} {
		first := of(answersOf(1, dim, same))
		for name, f := range map[string]func(float32) float32{
			"the same": same, "longer": func(x float32) float32 { return x * 37.5 },
			"of 4 bits":  func(x float32) float32 { return float32(int(x*4+8.5)-8) / 4 },
			"with noise": func(x float32) float32 { return x + float32(rand.NormFloat64())/20 },
		} {
			if l := Likeness(first, of(answersOf(1, dim, f))); l < LeastLikeness || l > 1.0000001 {
				t.Errorf("%d dimensions, %s: %.4f", dim, name, l)
			}
		}
		for model := range uint64(200) {
			if l := Likeness(first, of(answersOf(2+model, dim, same))); dim > 2 && l > .8 {
				t.Errorf("%d dimensions, another model: %.4f", dim, l)
			}
		}
		sparse := answersOf(1, dim, same)
		for i := range sparse {
			s := &db.Sparse{Value: sparse[i].Dense}
			for j := range dim {
				s.Index = append(s.Index, uint32(j))
			}
			sparse[i].Vector = Vector{Sparse: s}
		}
		if !slices.Equal(of(sparse), first) {
			t.Errorf("%d dimensions: the same vectors as sparse ones have another fingerprint", dim)
		}
	}
	// Stored fingerprints have to stay what they are.
	fixed := []answer{{Vector: Vector{Dense: []float32{3, -1, 4, 1, -5}}}}
	if got := fmt.Sprintf("%x", of(fixed)[:8]); got != "12126d24812436ca" {
		t.Errorf("the fingerprint of a fixed vector begins with %s", got)
	}
	// Vectors of 0, and refusals of all.
	_, err := p.fingerprint([]answer{{Vector: Vector{Dense: make([]float32, 5)}}})
	fails(t, err, Failed, "its vectors are 0")
	refused := answer{err: p.failed(Failed, &refusal{"no such word"}, "")}
	_, err = p.fingerprint([]answer{refused, refused, refused, refused})
	fails(t, err, Failed, "it refuses all inputs that tell encoders apart: no such word")
	some := answersOf(1, 64, same)
	some[1] = refused
	if l := Likeness(of(some), of(answersOf(1, 64, same))); l > LeastLikeness {
		t.Errorf("an encoder that refuses a probe is like one that does not: %.3f", l)
	}
	if l := Likeness(of(some), of(some)); l < .999 {
		t.Errorf("one that refuses a probe is like itself by %.3f", l)
	}
	if l := Likeness(nil, nil); l != 0 {
		t.Errorf("no fingerprints are alike by %v", l)
	}
}

// An encoder whose model has changed behind its command makes no vectors.
func TestIdentity(t *testing.T) {
	const dim = 96
	var model, asked atomic.Uint64
	model.Store(1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		var in struct{ Input []string }
		if r.URL.Path == "/predict" {
			text := r.FormValue("text")
			if f, _, err := r.FormFile("image"); err == nil {
				m, err := png.Decode(f)
				text = fmt.Sprint(m.Bounds(), m.At(0, 0), err)
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"clip": modelled(model.Load(), text, dim)})
			return
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		data := []any{}
		for _, text := range in.Input {
			data = append(data, map[string]any{"embedding": modelled(model.Load(), text, dim)})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	defer s.Close()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("TMP", temp)
	picture := filepath.Join(t.TempDir(), "x.png")
	f, err := os.Create(picture)
	check(t, err)
	check(t, errors.Join(png.Encode(f, probePicture().(interface {
		SubImage(r image.Rectangle) image.Image
	}).SubImage(image.Rect(0, 0, 9, 9))), f.Close()))
	for _, c := range []struct {
		p     Program
		input string
	}{
		{Program{Command: []string{s.URL + "/v1/embeddings", "m"}}, "red"},
		{Program{Command: []string{s.URL + "/predict", "m"}}, "red"},
		{Program{Command: []string{s.URL + "/predict", "m"}, Input: db.InputFile}, picture},
	} {
		model.Store(1)
		c.p.Modality = "text"
		fingerprint, long, err := Identify(t.Context(), c.p, 0)
		check(t, err)
		if long != dim {
			t.Errorf("%d dimensions", long)
		}
		c.p.Fingerprint = fingerprint
		encode := func(e *Encoder) ([]Vector, error) { return e.Encode(t.Context(), dim, []string{c.input}) }
		same := New(c.p)
		for i := range 3 {
			before := asked.Load()
			x, err := encode(same)
			check(t, err)
			if c.p.Input == "" && !slices.Equal(x[0].Dense, modelled(1, c.input, dim)) || len(x) != 1 {
				t.Errorf("%q: %v", c.p.Command, x)
			}
			if n := asked.Load() - before; i > 0 && n != 1 {
				t.Errorf("%q: %d requests for an input", c.p.Command, n)
			}
		}
		model.Store(2)
		other := New(c.p)
		for range 2 {
			_, err = encode(other)
			fails(t, err, Changed, `"`+strings.Join(c.p.Command, " ")+`" is not the encoder that was stored`)
			fails(t, err, Changed, "--replace --set text=COMMAND")
		}
		_, err = Run(t.Context(), c.p, dim, []string{c.input})
		fails(t, err, Changed, "is not the encoder that was stored")
		model.Store(1)
		if _, err := encode(other); err != nil {
			t.Errorf("the model is back: %v", err)
		}
		_, _, err = Identify(t.Context(), c.p, dim+1)
		fails(t, err, Failed, "a vector of 96 numbers, the modality has 97 dimensions")
		same.Close()
		other.Close()
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

// Programs get the texts that tell them apart with their first input, once, flushed or not.
func TestIdentityOfPrograms(t *testing.T) {
	for _, mode := range []string{"lines", "at the end"} {
		p := testEncoder(t, mode, 0).Program
		fingerprint, _, err := Identify(t.Context(), p, dim)
		check(t, err)
		p.Fingerprint = fingerprint
		all, err := Run(t.Context(), p, dim, []string{"a b", "c"})
		if err != nil || len(all) != 2 || all[0].Dense[1] != 2 {
			t.Errorf("%s: %v, %v", mode, all, err)
		}
	}
	e := testEncoder(t, "lines", 0)
	fingerprint, _, err := Identify(t.Context(), e.Program, dim)
	check(t, err)
	e.Fingerprint = fingerprint
	_, err = vector(t.Context(), e, "refuse")
	fails(t, err, Refused, "the encoder of text: no such word")
	for i := range 2 {
		if x, err := vector(t.Context(), e, "asked"); err != nil || x.Dense[0] != float32(len(probes)+2+i) {
			t.Errorf("asked %v times, %v", x.Dense, err)
		}
	}
	if _, _, err := Identify(t.Context(), Program{Command: []string{"/nowhere/at/all"}}, dim); err == nil {
		t.Error("a program that is not there has a fingerprint")
	}
}

// A model that makes other vectors of the same input each time, as one with dropout, is not stored.
func TestDice(t *testing.T) {
	var calls atomic.Uint64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Input []string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		data := []any{}
		for _, text := range in.Input {
			data = append(data, map[string]any{"embedding": modelled(calls.Add(1), text, 96)})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	defer s.Close()
	p := Program{Modality: "text", Command: []string{s.URL + "/v1/embeddings", "m"}}
	_, _, err := Identify(t.Context(), p, 96)
	fails(t, err, Failed, "makes other vectors of the same input each time")
}
