package encoder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

// A pool encodes an input once while it keeps the vector, for the collection and modality that ask.
func TestPool(t *testing.T) {
	program := testEncoder(t, "lines", 0).Program
	files := program
	files.Input = db.InputFile
	standby := false
	p := NewPool(func(_ context.Context, collection string) ([]Stored, error) {
		if collection == "main" {
			return []Stored{{Program: program, Standby: standby}}, nil
		}
		return []Stored{{Program: files}}, nil
	})
	defer p.Close()
	asked := func(collection string, input db.EncoderInput, text string) float32 {
		x, err := p.Encode(t.Context(), collection, "text", input, dim, text)
		check(t, err)
		return x.Dense[0]
	}
	for range 2 {
		if n := asked("main", db.InputText, "asked"); n != 1 {
			t.Errorf("the program was asked %v times", n)
		}
	}
	if n := asked("other", db.InputFile, "asked"); n != 1 {
		t.Errorf("the program of another collection was asked %v times", n)
	}
	for i := range keptVectors {
		asked("main", db.InputText, fmt.Sprint("text ", i))
	}
	if n := asked("main", db.InputText, "asked"); n != keptVectors+2 {
		t.Errorf("a vector that many came after was kept: %v", n)
	}
	if got := p.Modalities(t.Context(), "main", db.InputText); !slices.Equal(got, []string{"text"}) {
		t.Errorf("modalities %v", got)
	}
	if got := p.Modalities(t.Context(), "other", db.InputText); len(got) > 0 {
		t.Errorf("modalities %v of files", got)
	}
	standby = true // from now on
	if got := p.Modalities(t.Context(), "main", db.InputText); len(got) > 0 {
		t.Errorf("modalities %v that stand by", got)
	}
	if n := asked("main", db.InputText, "asked"); n != keptVectors+2 {
		t.Errorf("an encoder that stands by was started again: %v", n)
	}
	before, err := p.encoder(t.Context(), "main", "text", db.InputText)
	check(t, err)
	program.Fingerprint = nil
	program.Command = append(slices.Clone(program.Command), "another")
	if n := asked("main", db.InputText, "asked"); n != 1 {
		t.Errorf("another command was asked %v times", n)
	}
	p.closing.Wait()
	if _, err := before.Encode(t.Context(), dim, []string{"x"}); !errors.Is(err, db.ErrClosed) {
		t.Errorf("the encoder that another one replaced: %v", err)
	}
	_, err = p.Encode(t.Context(), "main", "image", db.InputText, dim, "x")
	if !errors.Is(err, ErrNone) {
		t.Errorf("without an encoder: %v", err)
	}
	// The modality has other dimensions by now.
	if x, err := p.Encode(t.Context(), "main", "text", db.InputText, dim+1, "asked"); err == nil {
		t.Errorf("a vector of %d dimensions", len(x.Dense))
	}
}

// While a program is silent, a bounded number of inputs waits for it, each until its context ends.
func TestPoolIsBusy(t *testing.T) {
	program := testEncoder(t, "lines", 0).Program
	p := NewPool(func(context.Context, string) ([]Stored, error) { return []Stored{{Program: program}}, nil })
	defer p.Close()
	ctx, cancel := context.WithCancel(t.Context())
	const more = 7
	errs := make(chan error)
	for range 1 + maxWaiting + more {
		go func() {
			_, err := p.Encode(ctx, "main", "text", db.InputText, dim, "be silent")
			errs <- err
		}()
	}
	for range more {
		if err := <-errs; err != ErrBusy {
			t.Errorf("beside many others: %v", err)
		}
	}
	cancel()
	for range 1 + maxWaiting {
		if err := <-errs; err != context.Canceled {
			t.Errorf("after the end: %v", err)
		}
	}
}
