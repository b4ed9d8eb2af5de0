package command

import (
	"path/filepath"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/outfile"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files/parquet"
	"github.com/fddhdb/fddhdb/files/table"
)

// itemSink writes whole items.
func itemSink(f *outfile.File, path string, c *db.Collection, schema db.Schema) (sink, error) {
	if strings.EqualFold(filepath.Ext(path), ".parquet") {
		return parquetSink(f, path, c, schema)
	}
	return sink{put: func(it *db.Item) error {
		b, err := it.MarshalJSON() // an encoder would go over it again
		if err == nil {
			_, err = f.Write(append(b, '\n'))
		}
		return err
	}}, nil
}

// parquetSink writes the columns that import reads. Of codes it writes only given ones.
func parquetSink(f *outfile.File, path string, c *db.Collection, schema db.Schema) (sink, error) {
	if schema.IndexOnly {
		return sink{}, exit.Failedf("--items %s: collection %q is index-only: its items have no vectors here; write a .jsonl, or export from the database that it is a copy of", path, c.Name())
	}
	shape := &table.Shape{Code: schema.Bits / 8}
	for _, m := range schema.Modalities {
		shape.Vectors = append(shape.Vectors, table.Vector{Name: m.Name, Dim: m.Dim, Sparse: m.Sparse})
	}
	for _, d := range schema.Fields {
		shape.Fields = append(shape.Fields, table.Field{Name: d.Name, Type: string(d.Type)})
	}
	w, err := parquet.NewItemWriter(f, shape)
	if err != nil {
		return sink{}, exit.Failedf("--items %s: %w; a .jsonl takes any names", path, err)
	}
	var out table.Item
	return sink{func(it *db.Item) error {
		out.Reset()
		out.Key, out.Labels, out.Payload, out.Code = it.Key, it.Labels, it.Payload, it.Code
		for name, x := range it.Vectors {
			out.Vectors[name] = x
		}
		for name, x := range it.Sparse {
			out.Sparse[name] = table.Sparse{Index: x.Index, Value: x.Value}
		}
		for name, v := range it.Fields {
			out.Fields[name] = v
		}
		return w.Write(&out)
	}, w.Close}, nil
}
