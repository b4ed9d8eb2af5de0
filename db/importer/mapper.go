package importer

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/files/table"
)

// Names by which columns are guessed, the better guess first.
var (
	keyNames   = []string{"key", "id", "_id", "uuid", "path", "filename"}
	labelNames = []string{"labels", "label", "tags", "tag", "class", "category"}
)

// A mapper finds out what each column of a table becomes.
type mapper struct {
	file    string
	say     *Mapping
	words   *Words
	twice   Duplicates
	columns []table.Column
	schema  *db.Schema // of the collection that is there; nil: it is made of the columns
	uses    []table.Use
	done    []bool         // by column: its use is settled
	taken   map[string]int // name of a modality or field -> its column

	keyGuessed bool     // by another name than key
	keyless    bool     // no column is the key
	guessed    []string // in words, what could be wrong
	aside      []string // columns that are left aside, and why
}

// newMapper returns the mapper of a file, which has settled nothing.
func newMapper(file string, columns []table.Column, o *Options, schema *db.Schema) *mapper {
	return &mapper{file: file, say: &o.Mapping, words: o.words(), twice: o.OnDuplicate, columns: columns,
		schema: schema, taken: map[string]int{}, uses: make([]table.Use, len(columns)),
		done: make([]bool, len(columns))}
}

// settle settles columns as the user says, and guesses the rest.
func (m *mapper) settle() error {
	if err := m.obey(); err != nil {
		return err
	}
	if m.schema != nil {
		m.known()
	}
	if m.say.Key == "" {
		m.guessKey()
	}
	if len(m.say.Labels) == 0 {
		m.guessLabels()
	}
	m.guessWide()
	for i := range m.columns {
		if m.done[i] {
			continue
		}
		if err := m.guess(i); err != nil {
			return err
		}
	}
	return m.separate()
}

// separate settles what separates labels in the strings of columns. Without a separator a string is one
// label: which of them are lists the data cannot tell.
func (m *mapper) separate() error {
	separator, any := m.say.Separator, false
	for i := range m.columns {
		c, u := &m.columns[i], &m.uses[i]
		if u.Role != table.AsLabels ||
			c.Kind != table.Mixed && (c.Kind != table.Scalars || c.Type != "string") {
			continue
		}
		any = true
		if u.Separator = separator; separator == "" && c.Joined != "" {
			m.guessed = append(m.guessed,
				fmt.Sprintf("%q of %q is one label (%s %q makes several of it)", c.Joined, c.Name,
					m.words.Separator, table.Separator(c.Joined)))
		}
	}
	if separator != "" && !any {
		return fault.Invalid("%s: %s has no column of labels that are text", m.words.Separator, m.file)
	}
	return nil
}

// find returns the column that an option names.
func (m *mapper) find(option, name string) (int, error) {
	i := slices.IndexFunc(m.columns, func(c table.Column) bool { return c.Name == name })
	if i < 0 {
		var names []string
		for _, c := range m.columns {
			names = append(names, fmt.Sprintf("%q", c.Name))
		}
		return 0, fault.Invalid("%s: %s has no column %q: there is %s", option, m.file, name,
			listStart(names))
	}
	return i, nil
}

// use settles what an option says about a column.
func (m *mapper) use(option string, i int, u table.Use) error {
	c := &m.columns[i]
	if m.done[i] {
		return fault.Invalid("%s: column %q of %s is used twice, and a column becomes one thing", option, c.Name,
			m.file)
	}
	if err := c.Suits(u); err != nil {
		return fault.Invalid("%s: %s: %w", option, m.file, err)
	}
	if m.schema == nil && (c.Kind == table.Empty || c.Kind == table.Mixed) &&
		(u.Role == table.AsField || u.Role == table.AsVector) {
		return fmt.Errorf("%s: %w", option, failed(m.file, "column %q has %s: what a new collection is made of needs values of one type",
			c.Name, c.Holds()))
	}
	if u.Role == table.AsVector && c.Ragged != "" {
		return failed(m.file, "column %q has lists of different lengths, %s: the vectors of a modality have one", c.Name, c.Ragged)
	}
	if u.Role == table.AsVector || u.Role == table.AsField || u.Role == table.AsElement {
		if j, ok := m.taken[u.Name]; ok && (u.Role != table.AsElement || u.At == 0) {
			return fault.Invalid("%s: %q is to be of column %q and of column %q: names of modalities and fields are different", option, u.Name, m.columns[j].Name, c.Name)
		}
		if u.At == 0 {
			m.taken[u.Name] = i
		}
	}
	m.uses[i], m.done[i] = u, true
	return nil
}

// name settles what an option says about the column that it names.
func (m *mapper) name(option, name string, u table.Use) error {
	i, err := m.find(option, name)
	if err == nil && u.Role == table.AsField {
		u.Type = m.fieldType(u.Name, i)
	}
	if err == nil {
		err = m.use(option, i, u)
	}
	return err
}

// obey settles what the user says.
func (m *mapper) obey() error {
	if m.say.Key != "" {
		if err := m.name(m.words.Key, m.say.Key, table.Use{Role: table.AsKey}); err != nil {
			return err
		}
	}
	for _, name := range m.say.Labels {
		if err := m.obeyLabels(name); err != nil {
			return err
		}
	}
	for _, v := range m.say.Vectors {
		i, err := m.find(m.words.Vectors, v.Column)
		switch {
		case err == nil:
			err = m.use(m.words.Vectors, i, table.Use{Role: table.AsVector, Name: v.name()})
		case strings.Contains(v.Column, "*"):
			err = m.obeyWide(v)
		}
		if err != nil {
			return err
		}
	}
	for _, f := range m.say.Fields {
		u := table.Use{Role: table.AsField, Name: f.name()}
		if err := m.name(m.words.Fields, f.Column, u); err != nil {
			return err
		}
	}
	return nil
}

// obeyLabels settles the columns of labels that a name or a pattern stands for.
func (m *mapper) obeyLabels(name string) error {
	i, err := m.find(m.words.Labels, name)
	if err == nil {
		return m.use(m.words.Labels, i, m.labelUse(i))
	}
	if !strings.Contains(name, "*") {
		return err
	}
	any := false
	for i := range m.columns {
		c := &m.columns[i]
		if !like(name, c.Name) {
			continue
		}
		any = true
		u := m.labelUse(i)
		// several columns of class numbers are none
		if c.Kind == table.Scalars && (c.Type == "int" || c.Type == "float") {
			u = table.Use{Role: table.AsLabel, Name: c.Name}
		}
		if err := m.use(m.words.Labels, i, u); err != nil {
			return err
		}
	}
	if !any {
		return err
	}
	return nil
}

// labelUse returns how a column is one of labels. Bools, and 0 and 1, are the label of the name of the
// column, unless that says that its values are the labels.
func (m *mapper) labelUse(i int) table.Use {
	c := &m.columns[i]
	if c.Kind == table.Scalars && c.Flags && (c.Type == "bool" || !slices.Contains(labelNames, c.Name)) {
		return table.Use{Role: table.AsLabel, Name: c.Name}
	}
	return table.Use{Role: table.AsLabels}
}

// like reports whether a name is of a pattern in which * stands for any text.
func like(pattern, name string) bool {
	pattern = strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
	re, err := regexp.Compile("(?s)^" + pattern + "$")
	return err == nil && re.MatchString(name) // no name is of a pattern that is not UTF-8
}

// known settles the columns that are named as what the collection has.
func (m *mapper) known() {
	say := m.say
	if all := m.schema.Modalities; len(m.columns) == 1 && len(all) == 1 && len(say.Vectors) == 0 {
		c := &m.columns[0] // vectors alone
		if u := (table.Use{Role: table.AsVector, Name: all[0].Name}); c.Suits(u) == nil {
			m.uses[0], m.done[0], m.taken[u.Name] = u, true, 0
			return
		}
	}
	for i := range m.columns {
		c := &m.columns[i]
		if c.Name == keyNames[0] && say.Key == "" || c.Name == labelNames[0] && len(say.Labels) == 0 {
			continue
		}
		for _, name := range []string{c.Name, FieldName(c.Name)} {
			u := table.Use{Name: name}
			switch {
			case len(say.Vectors) == 0 && slices.ContainsFunc(m.schema.Modalities,
				func(x db.Modality) bool { return x.Name == name }):
				u.Role = table.AsVector
			case len(say.Fields) == 0 &&
				slices.ContainsFunc(m.schema.Fields, func(x db.Field) bool { return x.Name == name }):
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
			case c.Kind != table.Mixed && !c.Unique && m.twice == RefuseDuplicates:
				m.guessed = append(m.guessed, fmt.Sprintf(
					"%q is no key, as some of its values come twice (%s takes it)", name, m.words.OnDuplicate))
				continue
			}
			m.keyGuessed = true
			m.guessed = append(m.guessed, fmt.Sprintf("the key is %q", c.Name))
		}
		m.uses[i], m.done[i] = u, true
		return
	}
	if len(m.columns) > 1 {
		m.guessed = append(m.guessed, fmt.Sprintf(
			"no column is the key, so items are numbered (%s names one)", m.words.Key))
	}
	m.keyless = true
}

// named returns the column of a name, -1 if there is none; one in other letters, as ID, if none has these.
func (m *mapper) named(name string) int {
	if i := slices.IndexFunc(m.columns, func(c table.Column) bool { return c.Name == name }); i >= 0 ||
		name == keyNames[0] || name == labelNames[0] {
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
			m.guessed = append(m.guessed, fmt.Sprintf("labels are the places of 1 in lists of %d numbers",
				c.Dim))
		}
		m.uses[i], m.done[i] = u, true
		return
	}
}

// guess settles a column by what it holds.
func (m *mapper) guess(i int) error {
	c, say := &m.columns[i], m.say
	m.done[i] = true
	name := FieldName(c.Name)
	j, taken := m.taken[name]
	// Lists of numbers named labels are hardly vectors, but where other columns are the labels.
	labels := slices.Contains(labelNames, c.Name) && !slices.ContainsFunc(m.uses, func(u table.Use) bool {
		return u.Role == table.AsLabels || u.Role == table.AsLabel
	})
	if c.Cut != "" && len(say.Vectors) == 0 {
		return failed(m.file, "%s: column %q has arrays that numpy cut when it printed them: the numbers between their ... are not in the file. Write it again by df.to_parquet(...), or with lists: df[%[2]q] = df[%[2]q].map(lambda x: x.tolist())", c.Cut, c.Name)
	}
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
			m.leave(i, fmt.Sprintf("lists of strings, which %s makes labels", m.words.Labels))
		}
	default:
		m.leave(i, c.Holds())
	}
	return nil
}

// noVector returns the error for a table without vectors: which columns look like some, and what they are.
func (m *mapper) noVector() error {
	var alike, all []string
	for i := range m.columns {
		c := &m.columns[i]
		all = append(all, fmt.Sprintf("%q (%s)", c.Name, c.Describe()))
		why := ""
		switch text := strings.TrimSpace(c.Example); {
		case c.Kind == table.Numbers && c.Ragged != "":
			why = "has lists of different lengths, " + c.Ragged
		case c.Kind == table.Numbers && m.uses[i].Role != table.LeftAside:
			why = fmt.Sprintf("has %s, and becomes %s", c.Describe(), becomes(m.uses[i]))
		case c.Lists:
			why = "has lists of numbers, but not only: " + c.Holds()
		case c.Kind == table.Scalars && c.Type == "string" && arrayText.MatchString(text):
			why = fmt.Sprintf("has strings, such as %q, and no lists of numbers as [0.1, 0.2]", c.Example)
		}
		if why != "" {
			alike = append(alike, fmt.Sprintf("%q %s", c.Name, why))
		}
	}
	err := failed(m.file, "no column is a vector, which is a list of numbers, or 8 or more columns of numbers as d0, d1, ...: there is %s (%s names one; with 'd*' as the column fewer columns are enough)",
		listStart(all), m.words.NameVector)
	if alike != nil {
		err = failed(m.file, "no column is a vector: %s (%s names one)", strings.Join(alike[:min(len(alike), 5)], "; "),
			m.words.NameVector)
	}
	return &NoVectorsError{err}
}

// arrayText is text that may be meant as a vector.
var arrayText = regexp.MustCompile(`^(\w+\()?[\[({]*[-+]?[0-9.]+[0-9.eE+-]*[ ,;|]+[-+]?[0-9.]`)

// leave notes that a column is left aside.
func (m *mapper) leave(i int, why string) {
	m.aside = append(m.aside, fmt.Sprintf("%q (%s)", m.columns[i].Name, why))
}

// note returns in one line what has been guessed and could be wrong, "" if nothing has.
func (m *mapper) note() string {
	parts := slices.Clone(m.guessed)
	if len(m.aside) > 0 {
		parts = append(parts, "left aside: "+listStart(m.aside))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %s", m.file, strings.Join(parts, "; "))
}

// listStart returns the first entries of a list as text.
func listStart(list []string) string {
	const most = 20
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return strings.Join(list[:most], ", ") + ", ..."
}

func (m *Mapped) name() string { return cmp.Or(m.Name, FieldName(m.Column)) }

// FieldName makes the name of a modality or field of the name of a column: it leaves out the characters that
// a name cannot have. It is "" if no character is left.
func FieldName(column string) string {
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
