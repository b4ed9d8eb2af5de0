package files

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/internal/text"
)

// maxLabels bounds the labels of a file. The largest number in a vector of classes determines their count, so
// without a bound one wrong number would ask for any amount of memory.
const maxLabels = matrix.MaxCols

// maxLabelRows bounds the rows of a sparse matrix, which may claim any number of empty ones.
const maxLabelRows = 1 << 28

// Labels are the labels of the items of a file.
type Labels struct {
	Names []string // the labels, each once
	Sets  [][]int  // by item: indexes into Names, ascending and distinct; may be empty

	Numbers bool // the file has a matrix or classes, whose labels have an order; not text
	Classes bool // the file has the class of each item: the last classes may be missing
}

// ReadLabels reads the labels of items.
//
// A .npy, .npz, .mat or .csv is a matrix of 0 and 1, a row an item and a column a label, or the class number
// of each item, from 0; the largest number determines the number of labels. An item of the class -1 or NaN,
// or whose field in a .csv is empty, has no label. Class numbers are a .npy of one dimension, and one row or
// column of a .mat, as MATLAB has no arrays of one dimension, or a .csv of one column. The type may be any
// integer or bool, or a float type if every value is an integer; matrices may be sparse. Names are "0", "1"
// and so on, or those in the header of a matrix in a .csv. Any other value gives an *Error with the row and,
// in a matrix, the column. FILE.npz:NAME and FILE.mat:NAME are as for Open.
//
// Any other file is UTF-8 text, and so is a .csv with anything else than such numbers: one line an item,
// labels separated by commas and without surrounding blanks. An empty line is an item without labels. A label
// that comes twice on its line counts once, and nothing between two commas is no label. There is no header,
// and quotes have no meaning. Names are in order of first appearance.
//
// At most 1,048,576 labels are supported. The result takes 24 bytes an item and 8 a label of an item; it
// belongs to the caller.
func ReadLabels(path string) (*Labels, error) {
	file, _ := Cut(path)
	switch ext := Extension(file); ext {
	case ".npy", ".npz", ".mat", ".jsonl", ".parquet":
		const from = ".npy, .npz, .mat, .csv and text files"
		if ext == ".jsonl" || ext == ".parquet" { // they would be misread as text
			return nil, matrix.FileError(path, unsupported(ext, "labels", from))
		}
		v, err := open(path, path, true, "labels", from)
		if err != nil {
			return nil, err
		}
		defer v.Close()
		return labelsOf(v)
	}
	f, err := openText(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if again, regular := f.(io.ReadSeeker); Extension(path) == ".csv" && regular {
		return csvLabels(path, again)
	}
	return textLabels(path, f)
}

// openText opens a file of text. It may be a pipe, else it is an io.Seeker.
func openText(path string) (io.ReadCloser, error) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().IsRegular() {
		src, err := matrix.Open(path, path)
		if err != nil {
			return nil, err
		}
		return struct {
			*io.SectionReader
			io.Closer
		}{io.NewSectionReader(src, 0, src.Size), src}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, matrix.FileError(path, err)
	}
	return struct{ io.ReadCloser }{f}, nil
}

// numberNames returns the names of numbered labels.
func numberNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	return names
}

// labelSets collects the sets of items one after the other in one array, as an allocation for each item would
// cost more than most sets.
type labelSets struct {
	labels []int // of all items
	ends   []int // by item: end in labels
}

func (s *labelSets) add(label int) { s.labels = append(s.labels, label) }

// end ends the set of the current item.
func (s *labelSets) end() {
	start := 0
	if n := len(s.ends); n > 0 {
		start = s.ends[n-1]
	}
	set := s.labels[start:]
	slices.Sort(set)
	s.labels = s.labels[:start+len(slices.Compact(set))]
	s.ends = append(s.ends, len(s.labels))
}

// numbered returns the labels, which are numbers.
func (s *labelSets) numbered(names []string, classes bool) *Labels {
	return &Labels{Names: names, Sets: s.sets(), Numbers: true, Classes: classes}
}

// sets returns the sets. Appending to one does not write to the next.
func (s *labelSets) sets() [][]int {
	sets := make([][]int, len(s.ends))
	start := 0
	for i, end := range s.ends {
		sets[i] = s.labels[start:end:end]
		start = end
	}
	return sets
}

// labelsOf reads the labels of a matrix or, if it is flat, of class numbers.
func labelsOf(v *Vectors) (*Labels, error) {
	var sets labelSets
	labels := v.Cols
	if v.Flat {
		labels = 0
	}
	if v.Rows > maxLabelRows {
		return nil, matrix.FileError(v.Name, fmt.Errorf("a matrix of labels has more than %s rows",
			matrix.Thousands(maxLabelRows)))
	}
	var index []uint32
	var value []float32
	row := make([]float64, v.Cols)
	for {
		var err error
		if v.Sparse {
			index, value, err = v.NextSparse(index[:0], value[:0])
		} else {
			err = v.NextNumbers(row)
		}
		switch {
		case err == io.EOF:
			return sets.numbered(numberNames(labels), v.Flat), nil
		case err != nil:
			return nil, err
		case v.Flat:
			class, err := classNumber(row[0])
			if err != nil {
				return nil, v.Bad(-1, err)
			}
			if class >= 0 {
				sets.add(class)
				labels = max(labels, class+1)
			}
		case v.Sparse:
			for i, j := range index {
				if value[i] != 1 {
					return nil, v.Bad(int(j), noFlag(float64(value[i])))
				}
				sets.add(int(j))
			}
		default:
			for c, x := range row {
				switch x {
				case 0:
				case 1:
					sets.add(c)
				default:
					return nil, v.Bad(c, noFlag(x))
				}
			}
		}
		sets.end()
	}
}

func noFlag(x float64) error {
	return fmt.Errorf("%s is neither 0 nor 1, which is what a matrix of labels holds; class numbers are an array of one dimension, or of a .mat one row or column", number(x))
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 32) }

// classNumber returns the class that a number is, -1 for none.
func classNumber(x float64) (int, error) {
	switch {
	case x == -1 || math.IsNaN(x):
		return -1, nil
	case x != math.Trunc(x) || math.IsInf(x, 0):
		return 0, fmt.Errorf("%s is not a class number: they are integers from 0", number(x))
	case x < 0:
		return 0, fmt.Errorf("the class number %s is negative: they count from 0, and -1 stands for none",
			number(x))
	case x >= maxLabels:
		return 0, fmt.Errorf("the class number %s is too large: at most %s labels are supported, numbered from 0", number(x), matrix.Thousands(maxLabels))
	}
	return int(x), nil
}

func textLabels(name string, r io.Reader) (*Labels, error) {
	var sets labelSets
	labels := namer{names: []string{}}
	for l := text.NewLines(name, r, text.ShortLine); ; {
		line, err := l.NextText()
		if err == io.EOF {
			return &Labels{Names: labels.names, Sets: sets.sets()}, nil
		}
		if err != nil {
			return nil, err
		}
		for field := range bytes.SplitSeq(line, []byte{','}) {
			if label := bytes.TrimSpace(field); len(label) > 0 {
				sets.add(labels.number(label))
			}
		}
		if len(labels.names) > maxLabels {
			return nil, l.Fail("brings one label more than the %s that are supported: is this a file of labels?", matrix.Thousands(maxLabels))
		}
		sets.end()
	}
}

// namer numbers names in order of first appearance.
type namer struct {
	names   []string
	numbers map[string]int
}

func (n *namer) number(name []byte) int {
	i, ok := n.numbers[string(name)]
	if !ok {
		if n.numbers == nil {
			n.numbers = map[string]int{}
		}
		i = len(n.names)
		n.names = append(n.names, string(name))
		n.numbers[n.names[i]] = i
	}
	return i
}

// NewLabels returns the labels of items whose sets have names. They are numbered in order of first
// appearance.
func NewLabels(items [][]string) *Labels {
	var sets labelSets
	var labels namer
	for _, names := range items {
		for _, name := range names {
			sets.add(labels.number([]byte(name)))
		}
		sets.end()
	}
	return &Labels{Names: labels.names, Sets: sets.sets()}
}

// csvLabels reads a regular .csv. It is a matrix of 0 and 1 if it has several columns and all lines, but a
// header, hold so many of them; it has classes if it has one column of whole numbers, fewer of them than
// rows; larger numbers are names. Anything else is text, in which quotes have no meaning.
func csvLabels(name string, f io.ReadSeeker) (*Labels, error) {
	var sets labelSets
	var header []string // of a matrix
	cols, labels := 0, 0
	for r := text.NewRecords(name, f, text.Numbers, maxLabels); ; {
		bad, err := r.Next()
		if err == io.EOF && len(sets.ends) > 0 {
			break
		}
		if err != nil && err != io.EOF {
			return nil, err
		}
		first := err == nil && r.Line == 1
		if first {
			cols = len(r.Fields)
		}
		numbers := err == nil && bad == nil && len(r.Fields) == cols
		for c := 0; c < cols && numbers; c++ {
			n, ok := wholeNumber(r.Fields[c])
			if cols > 1 {
				ok = ok && (n == 0 || n == 1)
				n = c - (1-n)*cols // less than 0 for a 0
			}
			if numbers = ok; ok && n >= 0 {
				sets.add(n)
				labels = max(labels, n+1)
			}
		}
		switch {
		case numbers:
			sets.end()
		case first && bad == nil: // a header, whose names are those of the labels if they are some, each once
			header = labelNames(r.Fields)
			sets.labels = nil
		default:
			if _, err := f.Seek(0, io.SeekStart); err != nil {
				return nil, matrix.FileError(name, err)
			}
			return textLabels(name, f)
		}
	}
	switch {
	case cols > 1 && header != nil:
		return sets.numbered(header, false), nil
	case cols > 1:
		return sets.numbered(numberNames(cols), false), nil
	case labels > len(sets.ends): // too far apart to be classes, such as years
		return few(sets.sets()), nil
	}
	return sets.numbered(numberNames(labels), true), nil
}

// few returns labels of numbers of which only those that are there are labels.
func few(sets [][]int) *Labels {
	var labels namer
	for _, set := range sets {
		for i, n := range set {
			set[i] = labels.number(strconv.AppendInt(nil, int64(n), 10))
		}
	}
	return &Labels{Names: labels.names, Sets: sets}
}

// labelNames returns the names in a header, each once, or nil if it is none.
func labelNames(fields [][]byte) []string {
	var names namer
	for i, field := range fields {
		if name := bytes.TrimSpace(field); len(name) == 0 || names.number(name) < i {
			return nil
		}
	}
	return names.names
}

// wholeNumber returns a class number, -1 for none: NaN and nothing stand for none, too.
func wholeNumber(field []byte) (int, bool) {
	field = bytes.TrimSpace(field)
	if len(field) == 0 {
		return -1, true
	}
	x, err := strconv.ParseFloat(string(field), 64)
	switch {
	case err != nil:
		return 0, false
	case math.IsNaN(x):
		return -1, true
	case x != math.Trunc(x) || x < -1 || x > math.MaxInt32:
		return 0, false
	}
	return int(x), true
}
