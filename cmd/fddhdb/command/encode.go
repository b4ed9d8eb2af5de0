package command

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/outfile"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files/npy"
)

func encodeCommand(e *env) *cobra.Command {
	var o common
	var from, out string
	var vectors []string
	cmd := &cobra.Command{
		Use:     "encode DIR --from NAME --vectors FILE --out FILE.npy",
		Short:   "Make codes of vectors without storing them",
		GroupID: groupLearn,
		Long: usage.Prose(`
			Encode writes the code that each row of a file of vectors has as a query:
			uint8, a row a vector and bits/8 columns, bit j of a code being bit j mod 8 of
			byte j/8, as numpy.packbits(..., bitorder='little') packs them.

			With --vectors NAME=FILE, once or several times, row i of all files is one item. Its
			code is the one that it would get if it were stored without labels.`),
		Example: usage.Example(`
			fddhdb encode wiki.db --from text --vectors query_text.npy --out codes.npy
			fddhdb encode wiki.db --vectors image=query_image.npy \
			    --vectors text=query_text.npy --out codes.npy`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := queryFiles(from, vectors)
			switch {
			case err != nil:
				return err
			case out == "":
				return exit.Usagef("--out FILE.npy is missing: where to write the codes")
			}
			if err := checkNPY("--out", out); err != nil {
				return err
			}
			return e.lookAtCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				bar := e.NewProgress()
				defer bar.End()
				codes, bits, err := encodeFiles(cmd.Context(), c, from, list, out, bar)
				bar.End()
				if err != nil {
					return err
				}
				if o.json {
					return e.PrintJSON(map[string]int{"codes": codes, "bits": bits})
				}
				e.Printf("wrote %s of %d bits to %s\n", term.Plural(codes, "code", "codes"), bits, out)
				return nil
			})
		},
	}
	o.register(cmd)
	o.registerSpace(cmd)
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "modality `NAME` of the only file of vectors")
	f.StringArrayVar(&vectors, "vectors", nil, "vectors, a `FILE` with --from, else NAME=FILE; repeat it for each")
	f.StringVar(&out, "out", "", "where to write the codes, a `FILE`.npy")
	return cmd
}

// queryFiles returns the files of the flags, by modality.
func queryFiles(from string, vectors []string) ([]flags.Named, error) {
	if len(vectors) == 0 {
		return nil, exit.Usagef("encode needs vectors: --from NAME --vectors FILE, or --vectors NAME=FILE")
	}
	if from != "" {
		if len(vectors) > 1 {
			return nil, exit.Usagef("--from goes with one --vectors FILE; for several write --vectors NAME=FILE each")
		}
		return []flags.Named{{Name: from, Value: vectors[0]}}, nil
	}
	list := flags.NamedList{Kind: "NAME=FILE"}
	for _, v := range vectors {
		if err := list.Set(v); err != nil {
			return nil, exit.Usagef("--vectors %q: %w, or --from NAME for one file", v, err)
		}
	}
	return list.List, nil
}

// checkNPY refuses a name under which a .npy would be mistaken for another format.
func checkNPY(flag, path string) error {
	if strings.EqualFold(filepath.Ext(path), ".npy") {
		return nil
	}
	return exit.Usagef("%s %s: a .npy file is written, not %s", flag, path, term.FileKind(path))
}

// encodeRows is the number of rows that are encoded at a time.
const encodeRows = 1024

// encodeFiles writes the codes of rows: of row i of all files together, or of the rows of the only file as
// queries by modality from, if that is given.
func encodeFiles(ctx context.Context, c *db.Collection, from string, list []flags.Named, out string, bar *term.Progress) (rows, bits int, err error) {
	schema, err := c.Schema()
	if err != nil {
		return 0, 0, err
	}
	stats, err := c.Stats()
	if err != nil {
		return 0, 0, err
	}
	var sources source.Together
	var vectors []*source.Vectors
	defer func() { sources.Close() }()
	for _, v := range list {
		m, err := source.FindModality(c.Name(), schema, "--vectors", v.Name)
		if err != nil {
			return 0, 0, err
		}
		s, err := source.OpenVectors(v.Name, v.Value)
		if err != nil {
			return 0, 0, err
		}
		sources, vectors = append(sources, s), append(vectors, s)
		if err := s.CheckDim(m); err != nil {
			return 0, 0, err
		}
	}
	if err := sources.SameRows(); err != nil {
		return 0, 0, err
	}
	if !stats.Trained {
		return 0, 0, untrained(c)
	}
	rows, bits = sources.Rows(), stats.Bits
	var set outfile.Set
	defer set.Discard()
	f, err := set.Create(out)
	if err != nil {
		return 0, 0, err
	}
	w, err := npy.NewWriter[uint8](f, rows, bits/8)
	if err != nil {
		return 0, 0, err
	}
	for done := 0; done < rows; {
		bar.Report("encoding", int64(done), int64(rows))
		block, err := readBlock(vectors, min(encodeRows, rows-done))
		if err != nil {
			return 0, 0, err
		}
		codes, err := encodeBlock(ctx, c, from, paths(sources), done, block)
		if err != nil {
			return 0, 0, err
		}
		if err := w.Write(codes); err != nil {
			return 0, 0, outfile.Error(out, err)
		}
		done += len(block)
	}
	if err := w.Close(); err != nil {
		return 0, 0, outfile.Error(out, err)
	}
	return rows, bits, set.Commit()
}

// paths returns the names of files.
func paths(sources []source.Source) string {
	var list []string
	for _, s := range sources {
		list = append(list, s.Path())
	}
	return strings.Join(list, ", ")
}

// readBlock reads the next n rows of all files.
func readBlock(sources []*source.Vectors, n int) ([]db.Item, error) {
	block := make([]db.Item, n)
	for i := range block {
		block[i] = source.NewRow()
		for _, s := range sources {
			if err := s.Read(); err != nil {
				return nil, err
			}
			if dense, sparse := s.Copy(); sparse != nil {
				block[i].Sparse[s.Modality] = *sparse
			} else {
				block[i].Vectors[s.Modality] = dense
			}
		}
	}
	return block, nil
}

// encodeBlock encodes rows on all cores. It returns their codes one after the other.
// first is the number of the first row, and files their files, for errors.
func encodeBlock(ctx context.Context, c *db.Collection, from, files string, first int, block []db.Item) ([]byte, error) {
	codes := make([][]byte, len(block))
	errs := make([]error, len(block))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(block)) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(block) || ctx.Err() != nil {
					return
				}
				if from != "" {
					codes[i], _, errs[i] = c.EncodeQuery(ctx, queryOf(from, &block[i]))
				} else {
					codes[i], _, errs[i] = c.Encode(&block[i])
				}
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out []byte
	for i, err := range errs {
		if err != nil {
			return nil, exit.AtRow(err, files, first+i)
		}
		out = append(out, codes[i]...)
	}
	return out, nil
}

// queryOf returns the query by the vector of a row.
func queryOf(from string, row *db.Item) db.Query {
	q := db.Query{From: from, Vector: row.Vectors[from]}
	if x, ok := row.Sparse[from]; ok {
		q.Sparse = &x
	}
	return q
}
