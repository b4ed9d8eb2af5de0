package model

import (
	"fmt"
	"slices"
)

// Method is the way in which training solves for C and H. See the package comment.
type Method uint8

const (
	MethodAuto   Method = iota // MethodLabels
	MethodLabels               // the limit of large delta: label sets alone
	MethodJoint                // the exact joint step over C and every R_t
	MethodPaper                // the steps of the paper, one variable at a time
	MethodITQ                  // without labels: signs of turned principal axes, of vectors of one space
	MethodCCAITQ               // without labels: signs of turned canonical directions, of items with vectors in several spaces
)

var methodNames = []string{"auto", "labels", "joint", "paper", "itq", "cca-itq"}

// Methods names the methods, for errors.
const Methods = "auto, labels, joint, paper, itq or cca-itq"

func (m Method) String() string { return nameOf(methodNames, int(m), "method") }

// MarshalText writes the name, for reports.
func (m Method) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the name.
func (m *Method) UnmarshalText(b []byte) (err error) {
	*m, err = ParseMethod(string(b))
	return err
}

// ParseMethod returns the method with this name: auto, labels, joint, paper, itq or cca-itq.
func ParseMethod(s string) (Method, error) {
	if i := slices.Index(methodNames, s); i >= 0 {
		return Method(i), nil
	}
	return 0, fmt.Errorf("%w: method %q: it is %s", ErrOption, s, Methods)
}

// nameOf returns the name of number i of a kind of option, and for an unknown number what
// it is of.
func nameOf(names []string, i int, what string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", what, i)
}

// LabelFree reports whether the method learns without labels.
func (m Method) LabelFree() bool { return m >= MethodITQ }

// LabelFree reports whether the model was learned without labels: then it knows none, and has no
// statistics.
func (m *Model) LabelFree() bool { return m.method.LabelFree() }
