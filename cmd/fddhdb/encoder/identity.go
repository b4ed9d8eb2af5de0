package encoder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
)

// A command says which program runs, not which model: that changes with a file, an update or the service
// behind an address. Vectors of another model find nothing that is alike, and no error tells of it. So the
// fingerprint of an encoder is stored with its command: a projection of its vectors of some fixed inputs.

// LeastLikeness is the likeness of two fingerprints from which on they are of one encoder. Quantised weights
// and the rounding of another machine stay above it; the likeness of two models is about 0.
const LeastLikeness = .98

// probes are the texts of a fingerprint. An encoder may refuse some, if it knows only other words.
var probes = []string{"a red car at night", "two dogs play in the snow", "Berge im Nebel", "海边的日落"}

// fingerprintBytes is the length of a fingerprint. Each probe has a part of it, of equal length.
const fingerprintBytes = 64

// Identify returns the fingerprint of a program, which it starts and ends, for a modality of dim dimensions;
// 0 allows any number, but not sparse vectors. It returns this number, too. If the program fails, refuses all
// probes, or has other vectors for the same probes, it is an *Error.
func Identify(ctx context.Context, p Program, dim int) ([]byte, int, error) {
	e := New(p)
	defer e.Close()
	var made []byte // belongs to the goroutine that has the turn, as does long
	var long int    // the greatest number of dimensions
	err := e.do(ctx, func(ctx context.Context) error {
		inputs, remove, err := p.probes()
		if err != nil {
			return err
		}
		defer remove()
		answers, err := e.answers(ctx, dim, slices.Concat(inputs, inputs), true)
		if err == nil {
			made, err = p.fingerprint(answers[:len(inputs)])
		}
		if err == nil {
			err = e.sameAgain(made, answers[len(inputs):])
		}
		for _, a := range answers {
			long = max(long, len(a.Dense))
		}
		for _, a := range answers {
			if err == nil && dim == 0 && a.err == nil && len(a.Dense) != long {
				err = p.failed(Failed, fmt.Errorf("its vectors have %d and %d numbers", len(a.Dense), long), "")
			}
		}
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return made, cmp.Or(dim, long), nil
}

// sameAgain refuses a program whose vectors are others when it is asked again.
func (e *Encoder) sameAgain(made []byte, answers []answer) error {
	again, err := e.fingerprint(answers)
	if err != nil {
		return err
	}
	if likeness := Likeness(made, again); likeness < LeastLikeness {
		return e.failed(Failed, fmt.Errorf(`"%s" makes other vectors of the same input each time: their likeness is %.2f, and %.2f is the least. Has the model its trained weights, and is it set to inference, without dropout?`,
			strings.Join(e.Command, " "), likeness, LeastLikeness), "")
	}
	return nil
}

// Likeness returns the cosine of two fingerprints, from -1 to 1.
func Likeness(a, b []byte) float64 {
	if len(a) != len(b) {
		return 0
	}
	var product, squaresA, squaresB float64
	for i := range a {
		x, y := float64(int8(a[i])), float64(int8(b[i]))
		product, squaresA, squaresB = product+x*y, squaresA+x*x, squaresB+y*y
	}
	if squaresA == 0 || squaresB == 0 {
		return 0
	}
	return product / math.Sqrt(squaresA*squaresB)
}

// identified is answers. Before the first ones it has the program answer to the probes, too, and refuses
// another encoder than the one that was stored. A program gets all of them at once.
func (e *Encoder) identified(ctx context.Context, dim int, inputs []string, last bool) ([]answer, error) {
	if e.Fingerprint == nil || e.known || len(inputs) == 0 {
		all, err := e.answers(ctx, dim, inputs, last)
		if len(inputs) > 1 && !slices.ContainsFunc(all, func(a answer) bool { return a.err == nil }) {
			e.known = false // a service that is down may refuse every picture, but not the probe
		}
		return all, err
	}
	first, remove, err := e.probes()
	if err != nil {
		return nil, err
	}
	defer remove()
	all, err := e.answers(ctx, dim, slices.Concat(first, inputs), last)
	if err != nil {
		return nil, err
	}
	now, err := e.fingerprint(all[:len(first)])
	if err != nil {
		return nil, err
	}
	if likeness := Likeness(now, e.Fingerprint); likeness < LeastLikeness {
		files := ""
		if e.input() == db.InputFile {
			files = "--input file "
		}
		return nil, e.failed(Changed, fmt.Errorf(`"%s" is not the encoder that was stored, by its vectors: the likeness is %.2f, and %.2f is the least: run the model that has made the stored vectors, or store this one by "fddhdb encoder DIR %s--replace --set %s=COMMAND" and make the vectors of all items again`,
			strings.Join(e.Command, " "), likeness, LeastLikeness, files, e.Modality), "")
	}
	e.known = true
	return all[len(first):], nil
}

// probes returns the inputs of a fingerprint. remove removes their files.
func (p *Program) probes() (inputs []string, remove func(), err error) {
	if p.input() == db.InputText {
		return probes, func() {}, nil
	}
	temp, err := filepath.Abs(os.TempDir()) // programs run in another folder
	if err != nil {
		return nil, nil, err
	}
	f, err := os.CreateTemp(temp, "fddhdb-probe-*.png")
	if err != nil {
		return nil, nil, err
	}
	remove = func() { _ = os.Remove(f.Name()) }
	if err := errors.Join(png.Encode(f, probePicture()), f.Close()); err != nil {
		remove()
		return nil, nil, err
	}
	return []string{f.Name()}, remove, nil
}

// probePicture is a sun over the sea, in soft colours: programs that make it smaller in other ways get much
// the same.
func probePicture() image.Image {
	const size = 224
	m := image.NewNRGBA(image.Rect(0, 0, size, size))
	for y := range size {
		for x := range size {
			c := color.NRGBA{uint8(90 + x/4), uint8(140 + y/4), 230, 255}
			if y > size*5/8 {
				c = color.NRGBA{20, uint8(60 + y/4), uint8(110 + x/4), 255}
			} else if dx, dy := x-size/3, y-size/3; dx*dx+dy*dy < 40*40 {
				c = color.NRGBA{250, uint8(180 + y/4), 60, 255}
			}
			m.SetNRGBA(x, y, c)
		}
	}
	return m
}

// fingerprint returns the fingerprint of the answers to the probes: sums of each vector with pseudo-random
// signs, as numbers of 8 bits. Lengths of vectors do not count. The part of a probe that is refused is 0.
func (p *Program) fingerprint(answers []answer) ([]byte, error) {
	var sums [fingerprintBytes]float64
	part := fingerprintBytes / len(answers)
	var refused *Error
	for n, a := range answers {
		if a.err != nil && a.err.Reason != Refused {
			return nil, a.err
		}
		if a.err != nil {
			refused = a.err
			continue
		}
		squares := 0.
		of := sums[n*part:][:part]
		add := func(i uint32, x float32) {
			squares += float64(x) * float64(x)
			signs := mixed(uint64(i)) >> (n * part)
			for j := range of {
				of[j] += float64(x) * float64(int(signs>>j&1)*2-1)
			}
		}
		for i, x := range a.Dense {
			add(uint32(i), x)
		}
		if a.Sparse != nil {
			for k, i := range a.Sparse.Index {
				add(i, a.Sparse.Value[k])
			}
		}
		for j := range of {
			of[j] /= math.Sqrt(max(squares, math.SmallestNonzeroFloat64))
		}
	}
	most := 0.
	for _, s := range sums {
		most = max(most, math.Abs(s))
	}
	switch {
	case most == 0 && refused != nil:
		return nil, p.failed(Failed, fmt.Errorf("it refuses all inputs that tell encoders apart: %v", // no refusal
			refused.Err), "")
	case most == 0 || math.IsNaN(most):
		return nil, p.failed(Failed, errors.New("its vectors are 0 for the inputs that tell encoders apart"), "")
	}
	made := make([]byte, fingerprintBytes)
	for j, s := range sums {
		made[j] = byte(int8(math.Round(127 * s / most)))
	}
	return made, nil
}

// mixed returns 64 pseudo-random bits for a number (the step of SplitMix64).
func mixed(i uint64) uint64 {
	x := (i + 1) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
