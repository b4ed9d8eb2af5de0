package usage

import (
	"errors"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
)

func TestMistakes(t *testing.T) {
	root := func() *cobra.Command {
		root := &cobra.Command{Use: "program VERB", SilenceUsage: true, SilenceErrors: true}
		get := &cobra.Command{Use: "get DIR KEY", Run: func(*cobra.Command, []string) {}}
		get.Flags().IntP("k", "k", 0, "a number")
		get.Flags().String("labels", "", "a list")
		root.AddCommand(get)
		SetHelp(root, "Flags:", "",
			func(_ *cobra.Command, word string) error { return errors.New("no " + word) })
		root.SetFlagErrorFunc(FlagError)
		return root
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"get", "-k"}, "-k needs a value: program help get explains"},
		{[]string{"get", "--labels"}, "--labels needs a value: program help get explains"},
		{[]string{"get", "--label", "x"}, "unknown flag --label: did you mean --labels?"},
		{[]string{"get", "--something"}, "unknown flag --something: program help get explains"},
		{[]string{"get", "-xy"}, "unknown flag -x: a key that begins with - stands behind --, as in program get DIR -- -xy"},
		{[]string{"--something"}, "unknown flag --something: the verb comes first: program VERB"},
		{[]string{"help", "get", "more"}, "help explains one verb at a time: program help get"},
		{[]string{"help", "nosuch"}, "no nosuch"},
	} {
		r := root()
		r.SetArgs(c.args)
		if err := r.Execute(); err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.args, err, c.want)
		} else if c.want != "no nosuch" && exit.Code(err) != exit.Usage {
			t.Errorf("%q: exit code %d", c.args, exit.Code(err))
		}
	}
}

func TestProse(t *testing.T) {
	const source = "\n\t\t\tOne\n\t\t\t  two\n\n\t\t\tthree"
	if got, want := Prose(source), "One\n  two\n\nthree"; got != want {
		t.Errorf("prose: %q, want %q", got, want)
	}
	if got, want := Example(source), "  One\n    two\n\n  three"; got != want {
		t.Errorf("example: %q, want %q", got, want)
	}
}
