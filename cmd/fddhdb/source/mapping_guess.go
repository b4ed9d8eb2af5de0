package source

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files/table"
)

// known settles the columns that are named as what the collection has.
func (m *mapper) known(say *Mapping) {
	for i := range m.columns {
		c := &m.columns[i]
		if c.Name == keyNames[0] && say.Key == "" || c.Name == labelNames[0] && len(say.Labels) == 0 {
			continue
		}
		for _, name := range []string{c.Name, fieldName(c.Name)} {
			u := table.Use{Name: name}
			switch {
			case len(say.Vectors) == 0 && slices.ContainsFunc(m.schema.Modalities, func(x db.Modality) bool { return x.Name == name }):
				u.Role = table.AsVector
			case len(say.Fields) == 0 && slices.ContainsFunc(m.schema.Fields, func(x db.Field) bool { return x.Name == name }):
				u.Role, u.Type = table.AsField, m.fieldType(name, i)
			}
			// Map refuses what does not suit.
			if _, taken := m.taken[name]; u.Role != table.LeftAside && !m.done[i] && !taken {
				m.uses[i], m.done[i], m.taken[name] = u, true, i
			}
		}
	}
}

// fieldType returns the type of a field of a column.
func (m *mapper) fieldType(name string, i int) string {
	if m.schema != nil {
		for _, f := range m.schema.Fields {
			if f.Name == name {
				return string(f.Type)
			}
		}
	}
	return m.columns[i].Type
}

// guessKey takes the first column for keys that has their name, and whose values may be some.
func (m *mapper) guessKey() {
	for _, name := range keyNames {
		i := m.named(name)
		if i < 0 || m.done[i] {
			continue
		}
		u := table.Use{Role: table.AsKey}
		if name != keyNames[0] { // this one is refused if it does not suit
			c := &m.columns[i]
			switch {
			case c.Kind == table.Empty:
				continue
			case c.Suits(u) != nil:
				m.guessed = append(m.guessed, fmt.Sprintf("%q is no key, as it has %s", c.Name, c.Holds()))
				continue
			case c.Kind != table.Mixed && !c.Unique:
				m.guessed = append(m.guessed, fmt.Sprintf("%q is no key, as some of its values come twice", name))
				continue
			}
			m.keyGuessed = true
			m.guessed = append(m.guessed, fmt.Sprintf("the key is %q", c.Name))
		}
		m.uses[i], m.done[i] = u, true
		return
	}
	m.guessed = append(m.guessed, "no column is the key, so items are numbered (--key-column names one)")
	m.keyless = true
}

// named returns the column of a name, -1 if there is none; one in other letters, as ID, if none has these.
func (m *mapper) named(name string) int {
	if i := slices.IndexFunc(m.columns, func(c table.Column) bool { return c.Name == name }); i >= 0 || name == keyNames[0] || name == labelNames[0] {
		return i
	}
	return slices.IndexFunc(m.columns, func(c table.Column) bool { return strings.EqualFold(c.Name, name) })
}

// guessLabels takes the first column for labels that has their name and can have some.
func (m *mapper) guessLabels() {
	for _, name := range labelNames {
		i := m.named(name)
		u := table.Use{Role: table.AsLabels}
		if i < 0 || m.done[i] || m.columns[i].Kind == table.Empty {
			continue
		}
		c := &m.columns[i]
		if c.Suits(u) != nil {
			m.guessed = append(m.guessed, fmt.Sprintf("%q has no labels, but %s", c.Name, c.Holds()))
			continue
		}
		if name != labelNames[0] {
			m.guessed = append(m.guessed, fmt.Sprintf("labels are %q", c.Name))
		}
		if c.Hot() {
			m.guessed = append(m.guessed, fmt.Sprintf("labels are the places of 1 in lists of %d numbers", c.Dim))
		}
		m.uses[i], m.done[i] = u, true
		return
	}
}

// guess settles a column by what it holds.
func (m *mapper) guess(i int, say *Mapping) {
	c := &m.columns[i]
	m.done[i] = true
	name := fieldName(c.Name)
	j, taken := m.taken[name]
	// Lists of numbers named labels are hardly vectors, but where other columns are the labels.
	labels := slices.Contains(labelNames, c.Name) && !slices.ContainsFunc(m.uses, func(u table.Use) bool {
		return u.Role == table.AsLabels || u.Role == table.AsLabel
	})
	vector := c.Kind == table.SparseVectors || c.Kind == table.Numbers && c.Ragged == "" && !labels
	switch {
	case c.Name == "" || c.Kind == table.Empty: // such as the index of a table
	case c.Name == "payload" && c.Kind == table.Bytes:
		m.uses[i].Role = table.AsPayload
	case c.Name == "code" && c.Kind == table.Bytes:
		m.uses[i].Role = table.AsCode
	case vector && len(say.Vectors) > 0, c.Kind == table.Scalars && len(say.Fields) > 0:
		// The user has named those that are wanted.
	case (vector || c.Kind == table.Scalars) && (taken || name == ""):
		other := "its name has no letter or digit"
		if taken {
			other = fmt.Sprintf("%q is the name of column %q", name, m.columns[j].Name)
		}
		m.leave(i, other)
	case vector:
		m.uses[i] = table.Use{Role: table.AsVector, Name: name}
		m.taken[name] = i
	case c.Kind == table.Scalars:
		m.uses[i] = table.Use{Role: table.AsField, Name: name, Type: m.fieldType(name, i)}
		m.taken[name] = i
	case c.Kind == table.Numbers && c.Ragged != "":
		m.leave(i, "lists of different lengths, "+c.Ragged)
	case c.Kind == table.Strings:
		if len(say.Labels) == 0 {
			m.leave(i, "lists of strings, which --label-column makes labels")
		}
	default:
		m.leave(i, c.Holds())
	}
}

// leave notes that a column is left aside.
func (m *mapper) leave(i int, why string) {
	m.aside = append(m.aside, fmt.Sprintf("%q (%s)", m.columns[i].Name, why))
}

// note returns in one line what has been guessed and could be wrong, "" if nothing has.
func (m *mapper) note() string {
	parts := slices.Clone(m.guessed)
	if len(m.aside) > 0 {
		parts = append(parts, "left aside: "+listStart(m.aside, 20))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %s", m.file, strings.Join(parts, "; "))
}

// fieldName makes a name of a modality or field of the name of a column; "" if there is nothing to make it
// of.
func fieldName(column string) string {
	var b strings.Builder
	gap := false
	for _, r := range column {
		digit := unicode.IsDigit(r) || r == '-' || r == '.'
		if r == utf8.RuneError || !digit && r != '_' && !unicode.IsLetter(r) {
			gap = true
			continue
		}
		if gap && b.Len() > 0 || digit && b.Len() == 0 {
			b.WriteByte('_')
		}
		gap = false
		if b.Len()+utf8.RuneLen(r) > db.MaxNameBytes {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}
