package flags

import (
	"errors"
	"strings"
)

// Where is the value of --where: an expression or nothing.
type Where struct{ Expr string }

func (w *Where) String() string { return w.Expr }
func (w *Where) Type() string   { return "EXPR" }

// Set refuses an empty expression, which would match everything. Most likely a script
// has lost its value.
func (w *Where) Set(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("an expression is expected, such as label = 'cat'")
	}
	w.Expr = s
	return nil
}

// Given reports whether there is an expression.
func (w *Where) Given() bool { return w.Expr != "" }
