package vecfile

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
}

// ReadLabels reads the labels of items.
//
// A .npy of two dimensions is a matrix of 0 and 1, a row an item and a column a label;
// n x 1 is such a matrix too. A .npy of one dimension is the class number of each item,
// from 0; the largest number determines the number of labels. The type may be any
// integer or bool, or a float type if every value is an integer. Names are "0", "1" and
// so on. Any other value gives an *Error with the row and, in a matrix, the column.
//
// Any other extension is UTF-8 text: one line an item, labels separated by commas and
// without surrounding blanks. An empty line is an item without labels. A label that
// comes twice on its line counts once, and nothing between two commas is no label.
// There is no header, and quotes have no meaning, not even in a .csv. Names are in
// order of first appearance.
//
// At most 1,048,576 labels are supported. The result takes 24 bytes an item and 8 a
// label of an item; it belongs to the caller.
func ReadLabels(path string) (*Labels, error) {
	ext := extension(path)
	if ext == ".npy" {
		src, err := openSource(path)
		if err != nil {
			return nil, err
		}
		defer src.close()
		return readLabelsNPY(src)
	}
	// A .csv of labels is text like any other. Other formats of vectors would be
	// misread as text.
	if ext != ".csv" && knownFormat(ext) {
		return nil, unsupported(path, "labels", ".npy and text files")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	defer f.Close()
	return readLabelsText(path, f)
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

func readLabelsNPY(src source) (*Labels, error) {
	m, err := newNPYMatrix(src)
	if err != nil {
		return nil, err
	}
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
			sets.labels = append(sets.labels, class)
			labels = max(labels, class+1)
		} else {
			for c := range m.cols {
				b := m.element(row, c)
				switch m.dtype.number(b) {
				case 0:
				case 1:
					sets.labels = append(sets.labels, c)
				default:
					return nil, m.at(c, fmt.Errorf("%s is neither 0 nor 1, which is what a matrix of labels holds; class numbers are an array of one dimension", m.dtype.text(b)))
				}
			}
		}
		sets.end()
	}
	names := make([]string, labels)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	return &Labels{Names: names, Sets: sets.sets()}, nil
}

// classNumber returns the class of the row that m has just returned.
func classNumber(m *npyMatrix, row []byte) (int, error) {
	x := m.dtype.number(row)
	switch {
	case x != math.Trunc(x) || math.IsInf(x, 0): // NaN too
		return 0, m.at(-1, fmt.Errorf("%s is not a class number: they are integers from 0", m.dtype.text(row)))
	case x < 0:
		return 0, m.at(-1, fmt.Errorf("the class number %s is negative: they count from 0; for an item without labels use a 0/1 matrix or a text file", m.dtype.text(row)))
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
