package encoder

import (
	"context"
	"os/exec"

	"github.com/fddhdb/fddhdb/db"
)

// A kind is a way to make vectors. The first word of a command says which: nothing else is stored.
type kind struct {
	name string // for lists
	may  string // what its user allows, after "it may"

	// of reports whether a command with this first word is of the kind.
	of func(first string) bool

	// called returns the name of a command for errors.
	called func(command []string) string

	// find returns an error if the program cannot work, before it is stored.
	find func(p *Program) error

	// start returns the maker of a program. quit is closed when the encoder closes.
	start func(p *Program, quit <-chan struct{}) (maker, error)
}

// A maker makes vectors for an Encoder, for one call at a time.
type maker interface {
	// answers returns an answer to each input. If the whole call fails, it returns an *Error or the error of
	// the context. Answers behind one with an error may be empty. last says that no inputs follow.
	answers(ctx context.Context, dim int, inputs []string, last bool) ([]answer, error)

	// close ends the maker. It has no call by then.
	close()
}

// An answer is a vector, or the reason why there is none.
type answer struct {
	Vector
	err *Error
}

const getQueries = "get what you search by, and the token that its command names"

// kinds are all kinds. Of several, the first takes a command. It is a function, as their errors need them.
func kinds() []kind {
	return []kind{
		{"immich", getQueries, isImmich, hostOf, findService, startImmich},
		{"openai", getQueries, isURL, hostOf, findService, startOpenAI},
		{"built in", "run", isBuiltIn, firstOf, findBuiltIn, startBuiltIn},
		{"model2vec", "read its files", isModel2vec, firstOf, findModel2vec, startModel2vec},
		{"program", "run, as you, on this machine", func(string) bool { return true }, firstOf, findProgram, startProgram},
	}
}

// kind returns the kind of a program, whose command has a word.
func (p *Program) kind() kind {
	all := kinds()
	for _, k := range all[:len(all)-1] {
		if k.of(p.Command[0]) {
			return k
		}
	}
	return all[len(all)-1]
}

// TakesBoth reports whether a command makes vectors of texts and of files in one space.
func TakesBoth(command []string) bool { return isImmich(command[0]) }

// Kind returns the name of the kind of a program: openai or immich for an address, model2vec, or program for
// one that is started.
func (p *Program) Kind() string { return p.kind().name }

// May completes the sentence "it may ...": what the user allows by trusting the program.
func (p *Program) May() string { return p.kind().may }

// Find returns an error if there is no such program, or if an address or a model cannot be used.
func (p *Program) Find() error { return p.kind().find(p) }

// input returns what the program reads.
func (p *Program) input() db.EncoderInput {
	if p.Input == "" {
		return db.InputText
	}
	return p.Input
}

func firstOf(command []string) string { return command[0] }

func findProgram(p *Program) error {
	_, err := exec.LookPath(p.path())
	return err
}

func startProgram(p *Program, quit <-chan struct{}) (maker, error) {
	return &runner{Program: p, quit: quit}, nil
}

// A function is the maker of what needs no other process: it makes a vector of an input.
type function struct {
	*Program
	of    func(input string) (Vector, error)
	ended func()
}

func (f *function) answers(ctx context.Context, dim int, inputs []string, _ bool) ([]answer, error) {
	all := make([]answer, len(inputs))
	for i, input := range inputs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		x, err := f.of(input)
		if err == nil {
			err = x.Check(dim)
		}
		if all[i].Vector = x; err != nil {
			all[i].err = f.failed(Failed, err, "")
		}
	}
	return all, nil
}

func (f *function) close() { f.ended() }
