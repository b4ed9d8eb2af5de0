// Package arrows holds the test that keeps the direction of imports.
package arrows

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/fddhdb/fddhdb"

// allowed says which packages of this module each package may depend on, and
// which modules of others, both directly and through what it imports. A package
// that is missing here fails the test: decide where it belongs first.
var allowed = map[string]struct{ ours, others []string }{
	"codec":                 {nil, []string{roaring, sys}},
	"codec/vecfile":         {[]string{"codec", "codec/internal/jsontext"}, []string{roaring}},
	"codec/itemfile":        {[]string{"codec", "codec/internal/jsontext", "codec/vecfile"}, []string{roaring}},
	"codec/parquetfile":     {[]string{"codec", "codec/internal/jsontext", "codec/vecfile", "codec/itemfile"}, []string{roaring, parquet, compress}},
	"mih":                   {[]string{"codec"}, []string{roaring}},
	"model":                 {[]string{"codec", "internal/dense", "internal/freemem"}, []string{roaring, gonum, sys}},
	"db":                    {[]string{"db/internal/where", "db/backup", "internal/inside", "codec", "mih", "model", "internal/dense", "internal/freemem"}, []string{roaring, gonum, pebble, compress}},
	"db/internal/where":     {nil, []string{roaring}},
	"db/backup":             {[]string{"internal/inside"}, []string{compress}},
	"db/backup/storetest":   {[]string{"db/backup", "internal/inside"}, []string{compress}},
	"db/dbtest":             {[]string{"db", "db/internal/where", "db/backup", "internal/inside", "codec", "mih", "model", "internal/dense", "internal/freemem", "internal/oracle", "internal/synth"}, []string{roaring, gonum, pebble, compress}},
	"db/s3":                 {[]string{"db/backup", "internal/inside"}, []string{compress, minio}},
	"cmd/fddhdb":            {[]string{"cmd/fddhdb/command", "cmd/fddhdb/explore", "cmd/fddhdb/jsonform", "cmd/fddhdb/experiment", "cmd/fddhdb/measure", "cmd/fddhdb/shell", "cmd/fddhdb/source", "cmd/fddhdb/sheet", "cmd/fddhdb/chart", "cmd/fddhdb/outfile", "cmd/fddhdb/term", "cmd/fddhdb/exit", "db", "db/internal/where", "db/backup", "internal/inside", "db/s3", "codec", "codec/vecfile", "codec/internal/jsontext", "codec/itemfile", "codec/parquetfile", "mih", "model", "internal/dense", "internal/freemem"}, anything},
	"cmd/fddhdb/command":    {[]string{"cmd/fddhdb/explore", "cmd/fddhdb/jsonform", "cmd/fddhdb/experiment", "cmd/fddhdb/measure", "cmd/fddhdb/shell", "cmd/fddhdb/source", "cmd/fddhdb/sheet", "cmd/fddhdb/chart", "cmd/fddhdb/outfile", "cmd/fddhdb/term", "cmd/fddhdb/exit", "db", "db/internal/where", "db/backup", "internal/inside", "db/s3", "codec", "codec/vecfile", "codec/internal/jsontext", "codec/itemfile", "codec/parquetfile", "mih", "model", "internal/dense", "internal/freemem"}, anything},
	"cmd/fddhdb/explore":    {[]string{"cmd/fddhdb/jsonform", "db", "db/internal/where", "db/backup", "internal/inside", "codec", "codec/vecfile", "codec/internal/jsontext", "mih", "model", "internal/dense", "internal/freemem"}, []string{roaring, gonum, pebble, compress}},
	"cmd/fddhdb/jsonform":   {[]string{"db", "db/internal/where", "db/backup", "internal/inside", "codec", "mih", "model", "internal/dense", "internal/freemem"}, []string{roaring, gonum, pebble, compress}},
	"cmd/fddhdb/exit":       {[]string{"codec", "internal/inside", "db/backup", "db/internal/where", "mih", "internal/dense", "internal/freemem", "model", "db"}, []string{roaring, gonum, pebble, compress}},
	"cmd/fddhdb/term":       {nil, anything},
	"cmd/fddhdb/outfile":    {[]string{"codec", "internal/inside", "db/backup", "db/internal/where", "mih", "internal/dense", "internal/freemem", "model", "db", "cmd/fddhdb/exit"}, []string{roaring, gonum, pebble, compress}},
	"cmd/fddhdb/clitest":    {[]string{"codec", "codec/internal/jsontext", "codec/vecfile", "internal/inside", "db/backup", "db/internal/where", "mih", "internal/dense", "internal/freemem", "model", "db"}, []string{roaring, gonum, pebble, compress}},
	"cmd/fddhdb/chart":      {[]string{"codec", "internal/inside", "db/backup", "db/internal/where", "mih", "internal/dense", "internal/freemem", "model", "db", "cmd/fddhdb/exit", "cmd/fddhdb/term"}, anything},
	"cmd/fddhdb/sheet":      {[]string{"codec", "internal/inside", "db/backup", "db/internal/where", "mih", "internal/dense", "internal/freemem", "model", "db", "cmd/fddhdb/exit", "cmd/fddhdb/term", "cmd/fddhdb/chart", "cmd/fddhdb/outfile"}, anything},
	"cmd/fddhdb/source":     {[]string{"codec", "internal/inside", "db/backup", "db/internal/where", "mih", "internal/dense", "internal/freemem", "model", "db", "cmd/fddhdb/exit", "cmd/fddhdb/term", "codec/internal/jsontext", "codec/vecfile", "codec/itemfile", "codec/parquetfile"}, anything},
	"cmd/fddhdb/shell":      {[]string{"codec", "internal/inside", "db/backup", "db/internal/where", "mih", "internal/dense", "internal/freemem", "model", "db", "cmd/fddhdb/exit", "cmd/fddhdb/outfile", "cmd/fddhdb/term"}, anything},
	"cmd/fddhdb/measure":    {[]string{"codec", "internal/inside", "db/backup", "db/internal/where", "mih", "internal/dense", "internal/freemem", "model", "db", "cmd/fddhdb/exit", "cmd/fddhdb/term", "cmd/fddhdb/chart"}, anything},
	"cmd/fddhdb/experiment": {[]string{"codec", "internal/inside", "db/backup", "db/internal/where", "mih", "internal/dense", "internal/freemem", "model", "db", "cmd/fddhdb/exit", "cmd/fddhdb/term", "cmd/fddhdb/chart"}, anything},
	"internal/arrows":       {nil, nil},

	"codec/internal/jsontext": {nil, nil},

	"internal/codesets":   {[]string{"codec"}, []string{roaring}},
	"internal/dense":      {nil, []string{sys}},
	"internal/freemem":    {nil, []string{sys}},
	"internal/doctest":    {nil, nil},
	"internal/inside":     {nil, nil},
	"internal/field":      {[]string{"codec", "codec/vecfile", "codec/internal/jsontext", "internal/synth"}, []string{roaring, pebble}},
	"internal/killtest":   {nil, nil},
	"internal/manpage":    {[]string{"cmd/fddhdb/command", "cmd/fddhdb/explore", "cmd/fddhdb/jsonform", "cmd/fddhdb/experiment", "cmd/fddhdb/measure", "cmd/fddhdb/shell", "cmd/fddhdb/source", "cmd/fddhdb/sheet", "cmd/fddhdb/chart", "cmd/fddhdb/outfile", "cmd/fddhdb/term", "cmd/fddhdb/exit", "db", "db/internal/where", "db/backup", "internal/inside", "db/s3", "codec", "codec/internal/jsontext", "codec/itemfile", "codec/parquetfile", "codec/vecfile", "mih", "model", "internal/dense", "internal/freemem"}, anything},
	"internal/makeset":    {[]string{"codec", "codec/internal/jsontext", "codec/vecfile", "internal/synth"}, []string{roaring}},
	"internal/oracle":     {[]string{"db", "db/internal/where", "db/backup", "internal/inside", "codec", "mih", "model", "internal/dense", "internal/freemem"}, []string{roaring, gonum, pebble, compress}},
	"internal/orders":     {[]string{"db", "db/internal/where", "db/backup", "internal/inside", "codec", "codec/internal/jsontext", "codec/vecfile", "mih", "model", "internal/dense", "internal/freemem"}, []string{roaring, gonum, pebble, compress}},
	"internal/seed":       {nil, []string{rapid}},
	"internal/release":    {nil, nil},
	"internal/synth":      {nil, nil},
	"internal/versity":    {nil, []string{minio}},
	"internal/traintime":  {[]string{"codec", "codec/internal/jsontext", "codec/vecfile", "model", "internal/dense", "internal/freemem", "internal/synth"}, []string{roaring, gonum, sys}},
	"examples/stream":     {[]string{"db", "db/internal/where", "db/backup", "internal/inside", "codec", "mih", "model", "internal/dense", "internal/freemem", "internal/synth"}, anything},
	"examples/backup":     {[]string{"db", "db/internal/where", "db/backup", "internal/inside", "db/s3", "codec", "mih", "model", "internal/dense", "internal/freemem"}, []string{roaring, gonum, pebble, compress, minio}},
	"examples/neardup":    {[]string{"db", "db/internal/where", "db/backup", "internal/inside", "codec", "mih", "model", "internal/dense", "internal/freemem"}, []string{roaring, gonum, pebble, compress}},
	"examples/photos":     {[]string{"codec", "codec/internal/jsontext", "codec/vecfile"}, []string{roaring}},
	"examples/quickstart": {[]string{"db", "db/internal/where", "db/backup", "internal/inside", "codec", "mih", "model", "internal/dense", "internal/freemem"}, []string{roaring, gonum, pebble, compress}},
	"examples/service":    {[]string{"db", "db/internal/where", "db/backup", "internal/inside", "codec", "mih", "model", "internal/dense", "internal/freemem"}, []string{roaring, gonum, pebble, compress}},
	"examples/three":      {[]string{"db", "db/internal/where", "db/backup", "internal/inside", "codec", "mih", "model", "internal/dense", "internal/freemem"}, []string{roaring, gonum, pebble, compress}},

	"internal/metamorphic": {[]string{"internal/oracle", "db", "db/internal/where", "db/backup", "internal/inside", "codec", "mih", "model", "internal/dense", "internal/freemem"}, []string{roaring, gonum, pebble, compress}},
}

const (
	roaring = "github.com/RoaringBitmap/roaring/v2"
	sys     = "golang.org/x/sys"
	gonum   = "gonum.org/v1/gonum"
	pebble  = "github.com/cockroachdb/pebble/v2"
	minio   = "github.com/minio/minio-go/v7"

	compress = "github.com/klauspost/compress"
	parquet  = "github.com/parquet-go/parquet-go"
	rapid    = "pgregory.net/rapid"
)

var anything = []string{"*"}

// brought lists what the allowed modules bring along.
var brought = map[string][]string{
	roaring: {"github.com/bits-and-blooms/bitset", "golang.org/x/sys"},
	pebble:  anything,
	minio:   anything,
	parquet: anything,
}

func TestImportsFollowTheArrows(t *testing.T) {
	// Module is nil for the standard library.
	out, err := exec.Command("go", "list", "-deps", "-f",
		"{{if .Module}}{{.ImportPath}} {{.Module.Path}}{{end}}", module+"/...").Output()
	if err != nil {
		t.Fatal(explain(err))
	}
	for line := range strings.Lines(string(out)) {
		path, mod, _ := strings.Cut(strings.TrimSpace(line), " ")
		if mod != module || path == "" {
			continue
		}
		name := strings.TrimPrefix(path, module+"/")
		rule, ok := allowed[name]
		if !ok {
			t.Errorf("package %s has no place among the arrows", name)
			continue
		}
		for _, dep := range dependencies(t, path) {
			path, mod, _ := strings.Cut(dep, " ")
			switch {
			case mod == module:
				if dep := strings.TrimPrefix(path, module+"/"); !slices.Contains(rule.ours, dep) && dep != name {
					t.Errorf("%s depends on %s", name, dep)
				}
			case !permitted(rule.others, mod):
				t.Errorf("%s depends on module %s, through %s", name, mod, path)
			}
		}
	}
}

func permitted(others []string, mod string) bool {
	for _, o := range others {
		if o == "*" || o == mod || slices.Contains(brought[o], mod) || slices.Contains(brought[o], "*") {
			return true
		}
	}
	return false
}

func dependencies(t *testing.T, path string) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-f",
		"{{if .Module}}{{.ImportPath}} {{.Module.Path}}{{end}}", path).Output()
	if err != nil {
		t.Fatal(explain(err))
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(string(out)), "\n"), func(s string) bool { return s == "" })
}

// explain returns what the go command said, not only that it failed.
func explain(err error) string {
	if exit, ok := err.(*exec.ExitError); ok {
		return string(exit.Stderr)
	}
	return err.Error()
}
