package shell

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
)

// A testHost has some verbs, which do nothing, and a database with labels and a field.
type testHost struct {
	d      api.Database
	folder string
}

func (h testHost) Root(term.Mode) *cobra.Command {
	root := &cobra.Command{Use: "fddhdb"}
	for _, use := range []string{"count DIR", "scan DIR", "put DIR KEY", "get DIR KEY...",
		"delete DIR (KEY... | --where EXPR)", "eval DIR", "search DIR"} {
		c := &cobra.Command{Use: use, Args: cobra.ArbitraryArgs,
			RunE: func(*cobra.Command, []string) error { return nil }}
		c.Flags().String("collection", "main", "the collection `NAME`")
		c.Flags().String("where", "", "only items that match `EXPR`")
		c.Flags().Bool("json", false, "print JSON")
		switch c.Name() {
		case "put":
			c.Flags().StringArray("field", nil, "a field, `NAME=VALUE`")
			c.Flags().String("labels", "", "labels `A,B`")
		case "eval":
			c.Flags().StringArray("vectors", nil, "queries, `NAME=FILE`")
		case "search":
			c.Flags().IntP("k", "k", 10, "number `N` of hits")
			c.Flags().String("key", "", "the `KEY` of an item")
		}
		root.AddCommand(c)
	}
	for _, name := range []string{"readonly", "version"} {
		root.Flags().Bool(name, false, "")
	}
	root.Flags().StringArrayP("command", "c", nil, "run the `LINE`")
	return root
}

func (h testHost) Execute(ctx context.Context, root *cobra.Command, args []string) error {
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

func (h testHost) Meant(string, []string) string                  { return "" }
func (h testHost) Dir() string                                    { return h.folder }
func (h testHost) ReadOnly() bool                                 { return false }
func (h testHost) IsDatabase(string) bool                         { return false }
func (h testHost) Database(context.Context) (api.Database, error) { return h.d, nil }
func (h testHost) Collection(ctx context.Context, name string) (api.Collection, error) {
	return h.d.Collection(ctx, name)
}
func (h testHost) PrintSchemas(context.Context, []string, bool) error { return nil }
func (h testHost) Look(_ context.Context, dir string, f func(d api.Database)) {
	if dir == h.folder {
		f(h.d)
	}
}

// newTestShell returns a shell on a testHost.
func newTestShell(t testing.TB) *Shell {
	t.Helper()
	h := testHost{folder: filepath.Join(t.TempDir(), "a.db")}
	h.d = api.Folder(clitest.Must(db.Open(h.folder, nil))(t), nil)
	t.Cleanup(func() {
		if err := h.d.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := h.d.CreateCollection(context.Background(), "main", db.Schema{
		Modalities: []db.Modality{{Name: "image", Dim: 2}},
		Fields:     []db.Field{{Name: "year", Type: db.Int, Indexed: true}},
	})
	if err == nil {
		_, err = c.Put(context.Background(), &db.Item{Key: "x", Labels: []string{"a", "it's", "x = y"}})
	}
	clitest.Check(t, err)
	return New(h, term.NewPrinter(&bytes.Buffer{}, &bytes.Buffer{}), strings.NewReader(""), nil, nil,
		term.ModeTable)
}

// testDialogue returns a shell at a simulated terminal.
func testDialogue(t *testing.T) (*Shell, *bytes.Buffer) {
	t.Helper()
	s := newTestShell(t)
	s.terminal = &dialogue{out: os.Stdout, cooked: &testTerminal{}}
	var remarks bytes.Buffer
	s.out.Stderr = &remarks
	return s, &remarks
}
