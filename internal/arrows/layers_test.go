package arrows

// These are the foreign modules that layers may import.
const (
	roaring = "github.com/RoaringBitmap/roaring/v2"
	pebble  = "github.com/cockroachdb/pebble/v2"
	gonum   = "gonum.org/v1/gonum"
	sys     = "golang.org/x/sys"
	term    = "golang.org/x/term"
	parquet = "github.com/parquet-go/parquet-go"
	minio   = "github.com/minio/minio-go/v7"
	rapid   = "pgregory.net/rapid"
	gocmp   = "github.com/google/go-cmp"

	xxhash = "github.com/cespare/xxhash/v2"

	compress   = "github.com/klauspost/compress"
	prometheus = "github.com/prometheus/client_golang"
	brotli     = "github.com/andybalholm/brotli"
	lz4        = "github.com/pierrec/lz4/v4"

	huma      = "github.com/danielgtaylor/huma/v2"
	xtime     = "golang.org/x/time"
	ximage    = "golang.org/x/image"
	imagemeta = "github.com/bep/imagemeta"
	xtext     = "golang.org/x/text"
	cobra     = "github.com/spf13/cobra"
	pflag     = "github.com/spf13/pflag"
	liner     = "github.com/peterh/liner"
	pretty    = "github.com/jedib0t/go-pretty/v6"

	mcpsdk     = "github.com/modelcontextprotocol/go-sdk"
	jsonschema = "github.com/google/jsonschema-go"
)

// ground is what all rooms of the database may import, and state what those above it may.
var (
	ground = names{"codec", "db/event", "db/fault", "db/internal/pmap", "db/internal/signal",
		"db/internal/words", "db/internal/work", "db/report",
		"internal/cells", "internal/instant", "internal/quant", "mih", "model", "model/eval", "model/fit"}
	state = ground.and("db/internal/record", "db/internal/spaces", "db/internal/state", "db/internal/store")
)

// house is this module from the top floor to the ground. A package may import the
// packages of lower layers, and imports the foreign modules that stand beside it.
var house = plan{
	layers: []layer{
		// Programs and tests that stand on the whole product.
		{"examples/embeddings": nil, "examples/neardup": nil, "examples/photos": nil,
			"examples/quickstart": nil,
			"examples/service":    nil, "examples/stamps": nil},
		{"db/internal/dbkit": {pebble, gocmp}},
		{"cmd/fddhdb/clitest": nil, "db/backup/storetest": nil, "internal/arrows": nil,
			"internal/effort": nil,
			"internal/oracle": nil, "internal/seed": {rapid},
			"internal/synth": nil, "internal/testfs": {pebble}, "internal/versity": {minio}},

		// The command line.
		{"cmd/fddhdb": nil},
		{"cmd/fddhdb/command": {cobra}},
		{"cmd/fddhdb/ingest": {cobra, pflag}},
		{"cmd/fddhdb/run": {cobra, pflag}},
		{"cmd/fddhdb/shell": {cobra, pflag, liner}},
		{"cmd/fddhdb/mcp": {mcpsdk, jsonschema}, "cmd/fddhdb/server": {pflag}},
		{"cmd/fddhdb/flags": {pflag}, "cmd/fddhdb/source": nil},
		{"cmd/fddhdb/encoder": {xtext}},
		{"cmd/fddhdb/picture": {ximage, imagemeta}},
		{"cmd/fddhdb/forms": nil, "cmd/fddhdb/outfile": nil, "cmd/fddhdb/usage": {cobra, pflag}},
		{"cmd/fddhdb/term": {cobra, pretty, term}},
		{"cmd/fddhdb/exit": nil, "cmd/fddhdb/python": nil, "cmd/fddhdb/userdir": nil},

		// Other processes reach the database through these.
		{"db/attach": nil, "db/importer": nil, "db/reembed": nil},
		{"db/serve/page": nil},
		{"db/serve": {huma, compress, prometheus, xtime}, "db/client": nil},
		{"contrib/promfddhdb": {prometheus}},
		{"internal/rest": nil, "internal/rows": nil},
		{"db/api": nil},

		// These a program may import beside the database, and need not.
		{"db/s3": {minio}},
		{"db/shard": {xxhash}},
		{"files": nil},
		{"files/internal/mat": nil, "files/internal/text": nil, "files/npy": nil,
			"files/parquet": {parquet, compress, brotli, lz4}},
		{"files/table": nil},
		{"files/internal/jsontext": nil},
		{"files/internal/matrix": {compress}},

		// The database.
		{"db": {pebble, roaring}},
		{"db/internal/repair": {pebble, roaring}},
		{"db/internal/learn": {pebble, roaring}},
		{"db/internal/bulk": {pebble, roaring}, "db/internal/copies": {pebble},
			"db/internal/search": {pebble, roaring}},
		{"db/internal/verify": {pebble, roaring}},
		{"db/internal/state": {pebble, roaring}},
		{"db/internal/store": {pebble}},
		{"db/internal/spaces": {pebble}},
		{"db/internal/record": {pebble, roaring}},
		{"db/internal/jsonform": nil, "db/internal/signal": nil},
		{"db/fault": {pebble}},
		{"db/backup": nil, "db/report": nil, "db/internal/where": {roaring}},
		{"db/event": nil, "db/internal/pmap": nil, "db/internal/work": nil},

		// Codes: how they are learned, how they are found, and their form.
		{"model/eval": nil, "model/fit": {gonum}},
		{"model/sum": {gonum}},
		{"mih": {roaring}, "model": {gonum}},
		{"model/internal/rank": nil},
		{"model/internal/aims": {gonum}, "model/internal/parallel": nil, "model/internal/random": nil,
			"model/internal/wire": nil},
		{"internal/cells": nil, "internal/quant": nil},
		{"internal/paged": nil, "internal/rotate": nil},
		{"model/internal/dense": nil},
		{"codec": {roaring}},
		{"internal/simd": {sys}},

		// The ground imports nothing of ours.
		{"codec/perceptual": nil, "db/internal/words": nil,
			"internal/freemem": {sys}, "internal/inside": nil, "internal/instant": nil,
			"internal/svgchart": nil},
	},
	rules: []rule{
		{of: names{"db/backup"}, only: names{"db/event", "db/internal/work", "internal/inside"},
			why: "a backup is read without the database that it is of"},
		{of: names{"db/event", "db/internal/work"}, only: names{},
			why: "anything of a database may use them"},
		{of: names{"db/report"}, only: names{"db/event", "model", "model/eval", "model/fit"},
			why: "figures have no behaviour"},
		{of: names{"model"}, never: names{"model/eval", "model/fit", "model/sum"},
			why: "a model does not know how it was fitted"},
		{of: names{"db/fault"}, only: names{"codec", "model", "model/fit", "model/sum"},
			why: "an error is made of the errors of the packages below"},
		{of: names{"db/internal/signal"}, only: names{"db/event", "db/fault", "db/internal/work"},
			why: "what tells of a database knows none"},
		{of: names{"db/internal/where"}, only: names{"db/internal/words", "internal/instant"},
			why: "an expression knows fields, not where they are stored"},
		{of: names{"db/internal/record"}, only: names{"codec", "db/fault", "internal/cells",
			"db/internal/words", "internal/instant", "mih", "model"},
			why: "a record is bytes and functions of them"},
		{of: names{"db/internal/record", "db/internal/where"},
			without: names{goStatement, "sync", "sync/atomic", "time"},
			why:     "no goroutine, lock or clock"},
		{of: names{"db/internal/spaces"}, only: names{"codec", "db/fault", "db/internal/record",
			"db/internal/work", "db/report", "model"},
			why: "functions of a space and an item"},
		{of: names{"db/internal/store"}, only: ground.and("db/internal/record", "internal/inside"),
			why: "the store knows bytes, not what they mean"},
		{of: names{"db/internal/verify"}, only: ground.and("db/internal/record", "db/internal/spaces",
			"db/internal/store"),
			never: names{"db/internal/state"},
			why:   "it must not trust what it checks"},
		{of: names{"db/internal/state", "db/internal/bulk"}, only: state,
			why: "what changes a database knows neither searches nor learning"},
		{of: names{"db/internal/search"}, only: ground.and("db/internal/record", "db/internal/spaces",
			"db/internal/state", "db/internal/where"),
			uses: names{"db/internal/state.View", "db/internal/state.CollectionView",
				"db/internal/state.CodeSetView", "db/internal/state.IndexView"},
			why: "a search reads a view, and changes nothing"},
		{of: names{"db/internal/copies"}, only: state.and("db/backup", "db/internal/verify"),
			why: "a copy is made of a state, and verified"},
		{of: names{"db/internal/learn"}, only: state.and("db/internal/bulk", "db/internal/search"),
			why: "learning reads, searches and asks for commits"},
		{of: names{"db/internal/repair"}, only: state.and("db/internal/bulk", "db/internal/learn",
			"db/internal/verify"),
			why: "a repair builds from the items, and neither searches nor copies"},
		{of: names{"files/..."}, never: names{"db/...", "mih", "model"},
			why: "files of vectors and items are read without a database"},
		{of: names{"codec/...", "db", "db/internal/...", "db/backup", "db/client", "mih", "model/..."},
			never: names{"files/..."}, why: "a database knows no file of data"},
		{of: names{"codec", "model/internal/dense"}, never: names{"os", "time"},
			why: "these are functions of their arguments"},
		{of: names{"db/internal/where"}, never: names{"os"},
			why: "it is a function of its arguments, some of which are times"},
		{of: names{"codec/...", "files/...", "mih", "model/...", "db/..."},
			never: names{"os.Exit", "os.Stdin", "os.Stdout", "os.Stderr"},
			why:   "the program decides what is printed and when it ends"},
		{of: names{"..."}, but: names{"files", "files/parquet", "cmd/fddhdb",
			"cmd/fddhdb/command", "cmd/fddhdb/ingest", "cmd/fddhdb/run",
			"cmd/fddhdb/source", "db/importer", "internal/rows"},
			never: names{parquet}, why: "a program that reads no files does not link their libraries"},
		{of: names{"..."}, but: names{"cmd/fddhdb", "cmd/fddhdb/command", "cmd/fddhdb/mcp"},
			never: names{mcpsdk}, why: "a program without assistants does not link their protocol"},
		{of: names{"..."}, but: names{"db/s3", "cmd/fddhdb", "cmd/fddhdb/command", "cmd/fddhdb/ingest",
			"cmd/fddhdb/run", "internal/versity"},
			never: names{minio}, why: "a program without buckets does not link their library"},
	},
}
