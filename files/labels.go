package files

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
)

// maxLabels bounds the labels of a file. The largest number in a vector of classes
// determines their count, so without a bound one wrong number would ask for any amount
// of memory.
const maxLabels = maxCols

// Labels are the labels of the items of a file.
type Labels struct {
	Names []string // the labels, each once
	Sets  [][]int  // by item: indexes into Names, ascending and distinct; may be empty

	Numbers bool // the file has a matrix or classes, whose labels have an order; not text
	Classes bool // the file has the class of each item: the last classes may be missing
}

// ReadLabels reads the labels of items.
//
// A .npy, .npz, .mat or .csv is a matrix of 0 and 1, a row an item and a column a label, or
// the class number of each item, from 0; the largest number determines the number of
// labels. An item of the class -1 or NaN, or whose field in a .csv is empty, has no
// label. Class numbers are a .npy of one dimension, and one row or column of a .mat, as
// MATLAB has no arrays of one dimension, or a .csv of one column. The type may be any
// integer or bool, or a float type if every value is an integer; matrices may be sparse.
// Names are "0", "1" and so on, or those in the header of a matrix in a .csv. Any other
// value gives an *Error with the row and, in a matrix, the column. FILE.npz:NAME and
// FILE.mat:NAME are as for Open.
//
// Any other file is UTF-8 text, and so is a .csv with anything else than such numbers: one
// line an item, labels separated by commas and without surrounding blanks. An empty line
// is an item without labels. A label that comes twice on its line counts once, and nothing
// between two commas is no label. There is no header, and quotes have no meaning. Names
// are in order of first appearance.
//
// At most 1,048,576 labels are supported. The result takes 24 bytes an item and 8 a
// label of an item; it belongs to the caller.
func ReadLabels(path string) (*Labels, error) {
	file, member := splitMember(path)
	ext := extension(file)
	for _, f := range vectorFormats {
		if f.ext != ext || ext != ".npy" && ext != ".npz" && ext != ".mat" {
			continue
		}
		src, err := openSource(file)
		if err != nil {
			return nil, err
		}
		src.name, src.member = path, member
		r, err := f.open(src)
		if err != nil {
			src.close()
			return nil, err
		}
		defer r.Close()
		return readLabels(r, ext == ".mat")
	}
	// Other formats of vectors would be misread as text.
	if ext != ".csv" && knownFormat(ext) {
		return nil, unsupported(path, "labels", ".npy, .npz, .mat, .csv and text files")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	defer f.Close()
	if info, err := f.Stat(); ext == ".csv" && err == nil && info.Mode().IsRegular() {
		return readLabelsCSV(path, f)
	}
	return readLabelsText(path, f)
}

// readLabels reads the labels of a matrix. In a .mat one row is a vector, too.
func readLabels(r Reader, mat bool) (*Labels, error) {
	if s, ok := r.(SparseReader); ok {
		return readSparseLabels(s)
	}
	n, ok := r.(*npyReader)
	if !ok {
		return nil, fmt.Errorf("%T is no matrix of labels", r)
	}
	m := n.m
	if mat && (m.rows == 1 || m.cols == 1) {
		m.rows, m.cols, m.vector = m.rows*m.cols, 1, true
	}
	return readLabelMatrix(m)
}

// readSparseLabels reads a sparse matrix of ones.
func readSparseLabels(r SparseReader) (*Labels, error) {
	var sets labelSets
	var index []uint32
	var value []float32
	for row := 0; ; row++ {
		var err error
		index, value, err = r.NextSparse(index[:0], value[:0])
		if err == io.EOF {
			return &Labels{Names: numberNames(r.Cols()), Sets: sets.sets(), Numbers: true}, nil
		}
		if err != nil {
			return nil, err
		}
		if len(sets.ends) >= maxLabelRows {
			return nil, fmt.Errorf("a sparse matrix of labels has more than %s rows", thousands(maxLabelRows))
		}
		for i, j := range index {
			if value[i] != 1 {
				return nil, fmt.Errorf("row %d, column %d: %v is neither 0 nor 1, which is what a matrix of labels holds", row, j, value[i])
			}
			sets.labels = append(sets.labels, int(j))
		}
		sets.end()
	}
}

// maxLabelRows bounds the rows of a sparse matrix, which may claim any number of empty
// ones.
const maxLabelRows = 1 << 28

// numberNames returns the names of numbered labels.
func numberNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	return names
}

// labelSets collects the sets of items one after the other in one array, as an
// allocation for each item would cost more than most sets.
type labelSets struct {
	labels []int // of all items
	ends   []int // by item: end in labels
}

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

func readLabelMatrix(m *npyMatrix) (*Labels, error) {
	var sets labelSets
	labels := 0
	if !m.vector {
		labels = m.cols
	}
	for {
		row, err := m.nextRow()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if m.vector {
			class, err := classNumber(m, row)
			if err != nil {
				return nil, err
			}
			if class >= 0 {
				sets.labels = append(sets.labels, class)
				labels = max(labels, class+1)
			}
		} else {
			for c := range m.cols {
				b := m.element(row, c)
				switch m.dtype.number(b) {
				case 0:
				case 1:
					sets.labels = append(sets.labels, c)
				default:
					return nil, m.at(c, fmt.Errorf("%s is neither 0 nor 1, which is what a matrix of labels holds; class numbers are an array of one dimension, or of a .mat one row or column", m.dtype.text(b)))
				}
			}
		}
		sets.end()
	}
	return &Labels{Names: numberNames(labels), Sets: sets.sets(), Numbers: true, Classes: m.vector}, nil
}

// classNumber returns the class of the row that m has just returned, -1 for none.
func classNumber(m *npyMatrix, row []byte) (int, error) {
	x := m.dtype.number(row)
	switch {
	case x == -1 || math.IsNaN(x):
		return -1, nil
	case x != math.Trunc(x) || math.IsInf(x, 0):
		return 0, m.at(-1, fmt.Errorf("%s is not a class number: they are integers from 0", m.dtype.text(row)))
	case x < 0:
		return 0, m.at(-1, fmt.Errorf("the class number %s is negative: they count from 0, and -1 stands for none", m.dtype.text(row)))
	case x >= maxLabels:
		return 0, m.at(-1, fmt.Errorf("the class number %s is too large: at most %s labels are supported, numbered from 0", m.dtype.text(row), thousands(maxLabels)))
	case m.dtype.kind == 'b' && x > 1:
		return 0, m.at(-1, m.dtype.notFinite(row))
	}
	return int(x), nil
}

func readLabelsText(name string, r io.Reader) (*Labels, error) {
	var sets labelSets
	names := []string{}
	numbers := map[string]int{}
	for l := newLines(name, r, maxLine); ; {
		line, err := l.nextText()
		if err == io.EOF {
			return &Labels{Names: names, Sets: sets.sets()}, nil
		}
		if err != nil {
			return nil, err
		}
		for field := range bytes.SplitSeq(line, []byte{','}) {
			label := bytes.TrimSpace(field)
			if len(label) == 0 {
				continue
			}
			i, ok := numbers[string(label)]
			if !ok {
				if i = len(names); i == maxLabels {
					return nil, l.fail("brings one label more than the %s that are supported: is this a file of labels?", thousands(maxLabels))
				}
				names = append(names, string(label))
				numbers[names[i]] = i
			}
			sets.labels = append(sets.labels, i)
		}
		sets.end()
	}
}
