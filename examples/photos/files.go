package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/fddhdb/fddhdb/files/npy"
)

// writeRoll writes the files of some photos. Their names begin with path.
func writeRoll(path string, photos []photo) error {
	var image, text [][]float32
	var labels, keys []string
	fields := []string{"year:int:index,caption:string"}
	for _, p := range photos {
		image, text = append(image, p.image), append(text, p.text)
		labels, keys = append(labels, strings.Join(p.labels, ",")), append(keys, p.key)
		fields = append(fields, fmt.Sprintf("%d,%s", p.year, p.caption))
	}
	return errors.Join(
		npy.WriteAll(path+"_image.npy", image),
		npy.WriteAll(path+"_text.npy", text),
		writeLines(path+"_labels.txt", labels),
		writeLines(path+"_keys.txt", keys),
		writeLines(path+"_fields.csv", fields))
}

func writeLines(path string, lines []string) error {
	return os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o666)
}
