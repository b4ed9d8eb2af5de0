package encoder

import (
	"fmt"
	"image"
	"path/filepath"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/picture"
	"github.com/fddhdb/fddhdb/codec/perceptual"
	"github.com/fddhdb/fddhdb/db"
)

// Look is the command of the encoder of pictures that needs no other program: it compares shapes and colours,
// by perceptual.Look. It needs no trust.
const Look = builtIn + "look"

const builtIn = "builtin:" // begins the commands of encoders of this process

func isBuiltIn(word string) bool { return strings.HasPrefix(word, builtIn) }

// OfPicture returns the function of a command that makes vectors of decoded pictures, of dim dimensions; nil
// if the command is none.
func OfPicture(command []string) (of func(image.Image) []float32, dim int) {
	if len(command) == 1 && command[0] == Look {
		return perceptual.Look, perceptual.LookDim
	}
	return nil, 0
}

func findBuiltIn(p *Program) error {
	switch of, _ := OfPicture(p.Command); {
	case of == nil:
		return fmt.Errorf("%s is not built in: %s is", strings.Join(p.Command, " "), Look)
	case p.input() != db.InputFile:
		return fmt.Errorf("%s makes vectors of files alone", Look)
	}
	return nil
}

func startBuiltIn(p *Program, _ <-chan struct{}) (maker, error) {
	if err := findBuiltIn(p); err != nil {
		return nil, err
	}
	of, _ := OfPicture(p.Command)
	return &function{Program: p, ended: func() {}, of: func(file string) (Vector, error) {
		m, err := picture.Read(file)
		if err != nil {
			return Vector{}, &refusal{fmt.Sprintf("%s: %v", filepath.Base(file), err)}
		}
		return Vector{Dense: of(m.Upright())}, nil
	}}, nil
}
