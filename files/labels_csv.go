package files

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
)

// A .csv of labels is a matrix of 0 and 1 if it has several columns and all lines, but a
// header, hold so many of them; it has classes if it has one column of whole numbers, fewer of them
// than rows; larger numbers are names.
// Anything else is text.

// labelCSV is what a .csv of labels holds.
type labelCSV struct {
	cols    int
	header  []string // of a matrix: the names
	first   bool     // the first line is a header
	numbers bool     // it is a matrix or has classes
}

// readLabelsCSV reads a regular file twice: first to see what it holds.
func readLabelsCSV(name string, f io.ReadSeeker) (*Labels, error) {
	form, err := labelForm(name, f)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fileError(name, err)
	}
	if !form.numbers {
		return readLabelsText(name, f)
	}
	var sets labelSets
	labels := 0
	for l := newLines(name, f, maxCSVLine); ; {
		line, err := l.nextText()
		switch {
		case err == io.EOF && form.cols == 1 && labels <= len(sets.ends):
			return &Labels{Names: numberNames(labels), Sets: sets.sets(), Numbers: true, Classes: true}, nil
		case err == io.EOF && form.cols == 1:
			return fewNumbers(sets.sets()), nil
		case err == io.EOF && form.header != nil:
			return &Labels{Names: form.header, Sets: sets.sets(), Numbers: true}, nil
		case err == io.EOF:
			return &Labels{Names: numberNames(form.cols), Sets: sets.sets(), Numbers: true}, nil
		case err != nil:
			return nil, err
		case form.first && l.line == 1:
			continue
		}
		for c := range form.cols {
			var field []byte
			if field, line, _, err = cutField(line); err != nil {
				return nil, l.fail("%w", err)
			}
			n, ok := wholeNumber(field)
			switch {
			case !ok || form.cols > 1 && n != 0 && n != 1: // it was a number before
				return nil, l.fail("%s was not there before: the file changes while it is read", quote(field))
			case form.cols > 1 && n == 1:
				sets.labels = append(sets.labels, c)
			case form.cols == 1 && n >= 0:
				sets.labels = append(sets.labels, n)
				labels = max(labels, n+1)
			}
		}
		sets.end()
	}
}

// fewNumbers returns labels of numbers that are too far apart to be those of classes, such
// as years: only the numbers that are there are labels.
func fewNumbers(sets [][]int) *Labels {
	labels := &Labels{Sets: sets}
	position := map[int]int{}
	for _, set := range sets {
		for i, n := range set {
			p, ok := position[n]
			if !ok {
				p = len(labels.Names)
				position[n] = p
				labels.Names = append(labels.Names, strconv.Itoa(n))
			}
			set[i] = p
		}
	}
	return labels
}

// labelForm sees what a file holds.
func labelForm(name string, f io.Reader) (form labelCSV, err error) {
	var names []string // of the first line
	rows := 0
	for l := newLines(name, f, maxCSVLine); ; {
		line, err := l.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return form, err
		}
		cols, whole, bits := 0, true, true
		for more := true; more; cols++ {
			var field []byte
			if field, line, more, err = cutField(line); err != nil {
				return form, nil // text, in which quotes have no meaning
			}
			n, ok := wholeNumber(field)
			whole = whole && ok
			bits = bits && ok && (n == 0 || n == 1) && len(field) > 0
			if l.line == 1 {
				names = append(names, string(field))
			}
		}
		switch {
		case l.line == 1 && cols > maxLabels:
			return form, nil
		case l.line == 1:
			form.cols = cols
			form.first = !whole
		case cols != form.cols, cols == 1 && !whole, cols > 1 && !bits:
			return form, nil
		}
		if l.line > 1 || !form.first {
			if cols > 1 && !bits {
				return form, nil
			}
			rows++
		}
	}
	form.numbers = rows > 0
	if form.first && form.cols > 1 {
		if form.header, err = labelNames(names); err != nil {
			return form, nil // text: these are no names of columns
		}
	}
	return form, nil
}

// labelNames returns the names in a header, each once.
func labelNames(names []string) ([]string, error) {
	seen := map[string]bool{}
	for _, name := range names {
		if name == "" || seen[name] {
			return nil, errors.New("no header")
		}
		seen[name] = true
	}
	return names, nil
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
