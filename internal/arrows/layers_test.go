package arrows

// These are the foreign modules that layers may import.
const (
	roaring = "github.com/RoaringBitmap/roaring/v2"
	pebble  = "github.com/cockroachdb/pebble/v2"
	gonum   = "gonum.org/v1/gonum"
	plot    = "gonum.org/v1/plot"
	sys     = "golang.org/x/sys"
	image   = "golang.org/x/image"
	term    = "golang.org/x/term"
	parquet = "github.com/parquet-go/parquet-go"
	minio   = "github.com/minio/minio-go/v7"
	rapid   = "pgregory.net/rapid"
	gocmp   = "github.com/google/go-cmp"

	compress = "github.com/klauspost/compress"
	brotli   = "github.com/andybalholm/brotli"
	lz4      = "github.com/pierrec/lz4/v4"

	cobra       = "github.com/spf13/cobra"
	pflag       = "github.com/spf13/pflag"
	liner       = "github.com/peterh/liner"
	pretty      = "github.com/jedib0t/go-pretty/v6"
	progressbar = "github.com/schollz/progressbar/v3"
)

// house is this module from the top floor to the ground. A package may import the
// packages of lower layers, and the foreign modules that its own layer names.
var house = plan{
	layers: []layer{
		// Programs and tests that stand on the whole product.
		{names{"examples/backup", "examples/neardup", "examples/photos", "examples/quickstart",
			"examples/service", "examples/stream", "examples/three"}, names{plot}},
		{names{"db/dbtest", "db/internal/dbkit", "internal/field", "internal/manpage", "internal/metamorphic",
			"internal/synth/makeset"}, names{pebble, gocmp}},
		{names{"cmd/fddhdb/clitest", "db/backup/storetest", "internal/oracle", "internal/seed", "internal/synth",
			"internal/versity"}, names{minio, rapid}},

		// The command line.
		{names{"cmd/fddhdb"}, nil},
		{names{"cmd/fddhdb/command"}, names{cobra, pflag, plot, term}},
		{names{"cmd/fddhdb/experiment", "cmd/fddhdb/measure", "cmd/fddhdb/shell"}, names{cobra, pflag, liner, plot, term}},
		{names{"cmd/fddhdb/sheet"}, names{plot, image}},
		{names{"cmd/fddhdb/chart", "cmd/fddhdb/explore", "cmd/fddhdb/outfile", "cmd/fddhdb/source"}, names{plot}},
		{names{"cmd/fddhdb/jsonform", "cmd/fddhdb/term"}, names{cobra, pretty, progressbar, term}},
		{names{"cmd/fddhdb/exit"}, names{cobra}},

		// These a program may import beside the database, and need not.
		{names{"db/s3"}, names{minio}},
		{names{"codec/parquetfile"}, names{parquet, compress, brotli, lz4}},
		{names{"codec/itemfile"}, nil},
		{names{"codec/vecfile"}, nil},

		// The database.
		{names{"db"}, names{pebble, roaring}},
		{names{"db/internal/repair"}, names{pebble, roaring}},
		{names{"db/internal/bulk/spool", "db/internal/learn"}, names{pebble, roaring}},
		{names{"db/internal/bulk", "db/internal/copies", "db/internal/search"}, names{pebble, roaring}},
		{names{"db/internal/verify"}, names{pebble, roaring}},
		{names{"db/internal/state"}, names{pebble, roaring}},
		{names{"db/internal/store"}, names{pebble}},
		{names{"db/internal/spaces"}, names{pebble}},
		{names{"db/internal/record"}, names{pebble, roaring}},
		{names{"db/internal/jsonform", "db/internal/signal"}, nil},
		{names{"db/fault"}, names{pebble}},
		{names{"db/backup", "db/report", "db/internal/where"}, names{compress, roaring}},
		{names{"db/event", "db/internal/work"}, nil},

		// Codes: how they are learned, how they are found, and their form.
		{names{"mih", "model"}, names{roaring, gonum}},
		{names{"model/internal/dense"}, names{sys}},
		{names{"codec"}, names{roaring, sys}},

		// The ground imports nothing of ours.
		{names{"codec/internal/jsontext", "internal/arrows", "internal/doctest", "internal/freemem",
			"internal/inside", "internal/killtest", "internal/release", "internal/testfs"}, names{pebble, sys}},
	},
	rules: []rule{
		{of: names{"db/backup"}, only: names{"db/event", "db/internal/work", "internal/inside"},
			why: "a backup is read without the database that it is of"},
		{of: names{"db/event", "db/internal/work"}, only: names{},
			why: "anything of a database may use them"},
		{of: names{"db/internal/where"}, only: names{},
			why: "an expression knows fields, not where they are stored"},
		{of: names{"db/internal/verify"}, never: names{"db/internal/state"},
			why: "it must not trust what it checks"},
		{of: names{"db/internal/search"}, never: names{"db/internal/state.Committer", "db/internal/state.Tx"},
			why: "a search reads a view, and changes nothing"},
		{of: names{"db/internal/record"}, never: names{"db/internal/work", "db/internal/signal", "db/internal/store"},
			why: "a record is bytes and functions of them: no goroutine, lock or clock"},
		{of: names{"codec/..."}, never: names{"db/...", "mih", "model"},
			why: "files of vectors and items are read without a database"},
		{of: names{"codec", "codec/internal/jsontext", "db/internal/where", "model/internal/dense"}, never: names{"os", "time"},
			why: "these are functions of their arguments"},
		{of: names{"codec/...", "mih", "model/...", "db/..."}, never: names{"os.Exit", "os.Stdin", "os.Stdout", "os.Stderr"},
			why: "the program decides what is printed and when it ends"},
		{of: names{"..."}, but: names{"codec/parquetfile", "cmd/fddhdb", "cmd/fddhdb/command", "cmd/fddhdb/source", "internal/manpage"},
			never: names{parquet}, why: "a program without Parquet files does not link their library"},
		{of: names{"..."}, but: names{"db/s3", "cmd/fddhdb", "cmd/fddhdb/command", "internal/manpage", "internal/versity", "examples/backup"},
			never: names{minio}, why: "a program without buckets does not link their library"},
	},
}
