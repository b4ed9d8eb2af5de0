package command

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/outfile"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files/npy"
)

func encodeCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupLearn, "encode DIR --from NAME --vectors FILE --out FILE.npy", "Make codes of vectors without storing them",
		`
		Encode writes the code that each row of a file of vectors has as a query:
		uint8, a row a vector and bits/8 columns, bit j of a code being bit j mod 8 of
		byte j/8, as numpy.packbits(..., bitorder='little') packs them.

		With --vectors NAME=FILE, once or several times, row i of all files is one item. Its
		code is the one that it would get if it were stored without labels.`, `
		fddhdb encode wiki.db --from text --vectors query_text.npy --out codes.npy
		fddhdb encode wiki.db --vectors image=query_image.npy \
		    --vectors text=query_text.npy --out codes.npy`).OnCollection().InSpace()
	var from, out string
	var vectors []string
	v.Flags.StringVar(&from, "from", "", "modality `NAME` of the only file of vectors")
	v.Flags.StringArrayVar(&vectors, "vectors", nil,
		"vectors, a `FILE` with --from, else NAME=FILE; repeat it for each")
	v.Flags.StringVar(&out, "out", "", "where to write the codes, a `FILE`.npy")
	return v.Does(func() error {
		named := flags.NamedList{Kind: "NAME=FILE"}
		for _, file := range vectors {
			if from != "" {
				file = from + "=" + file
			}
			if err := named.Set(file); err != nil {
				return exit.Usagef("--vectors %q: %w, or --from NAME for one file", file, err)
			}
		}
		switch {
		case len(vectors) == 0:
			return exit.Usagef("encode needs vectors: --from NAME --vectors FILE, or --vectors NAME=FILE")
		case out == "":
			return exit.Usagef("--out FILE.npy is missing: where to write the codes")
		}
		if err := checkNPY("--out", out); err != nil {
			return err
		}
		return v.Look(func() error {
			rows, bits, err := encode(v, from, named.List, out)
			if err != nil {
				return err
			}
			return v.Tell(map[string]int{"codes": rows, "bits": bits}, "wrote %s of %d bits to %s",
				term.Plural(rows, "code", "codes"), bits, out)
		})
	})
}

// checkNPY refuses a name under which a .npy would be mistaken for another format.
func checkNPY(flag, path string) error {
	if strings.EqualFold(filepath.Ext(path), ".npy") {
		return nil
	}
	return exit.Usagef("%s %s: a .npy file is written, not %s", flag, path, term.FileKind(path))
}

// encode writes the codes of rows: of row i of all files together, or of the rows of the only file as
// queries by modality from, if that is given.
func encode(v *run.Verb, from string, named []flags.Named, out string) (rows, bits int, err error) {
	var names source.FileNames
	for _, n := range named {
		names.Vectors = append(names.Vectors,
			source.VectorFile{Modality: n.Name, Input: source.Input{Path: n.Value, Name: n.Value}})
	}
	in, err := source.OpenFiles(names)
	if err != nil {
		return 0, 0, err
	}
	defer in.Close()
	if err := in.Check(v.Ctx, v.Collection, true); err != nil {
		return 0, 0, err
	}
	stats, err := v.Trained()
	if err != nil {
		return 0, 0, err
	}
	var set outfile.Set
	defer set.Discard()
	f, err := set.Create(out)
	if err != nil {
		return 0, 0, err
	}
	w, err := npy.NewWriter[uint8](f, in.Rows(), stats.Bits/8)
	if err != nil {
		return 0, 0, err
	}
	err = in.Each(v.Ctx, 0, func(item *db.Item, bad error) (err error) {
		v.Progress().Report("encoding", int64(rows), int64(in.Rows()))
		if bad != nil {
			return bad
		}
		var code []byte
		if from == "" {
			code, err = v.Collection.Encode(v.Ctx, item)
		} else {
			q := db.Query{From: from, Vector: item.Vectors[from]}
			if x, sparse := item.Sparse[from]; sparse {
				q.Sparse = &x
			}
			code, err = v.Collection.EncodeQuery(v.Ctx, q)
		}
		if err != nil {
			return exit.AtRow(err, in.Names(), rows)
		}
		rows++
		return w.Write(code)
	})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return 0, 0, err
	}
	return rows, stats.Bits, set.Commit()
}
