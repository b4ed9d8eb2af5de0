package command

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// ManPage writes the manual page of fddhdb in the man macros of roff: the help of every
// verb, of the shell, and of the environment.
func ManPage(w io.Writer) error {
	root := rootCommand(&env{Printer: term.NewPrinter(io.Discard, io.Discard), stdin: strings.NewReader("")})
	shell.AddDefaultVerbs(root)
	m := &manPage{}
	m.line(`.TH FDDHDB 1 "" "fddhdb" "User Commands"`)
	m.section("NAME")
	m.line(`fddhdb \- ` + roff(strings.ToLower(root.Short[:1])+root.Short[1:]))
	m.section("SYNOPSIS")
	for i, usage := range []string{"fddhdb VERB DIR [flags]",
		"fddhdb DIR [--readonly] [--mode MODE] [-c LINE]...", "fddhdb DIR < SCRIPT"} {
		if i > 0 {
			m.line(".br")
		}
		m.line(roff(usage))
	}
	m.section("DESCRIPTION")
	m.prose(root.Long)
	m.prose(root.Example)
	m.flags(root.Flags())
	m.flags(root.PersistentFlags())
	for _, group := range root.Groups() {
		m.section(strings.ToUpper(strings.TrimSuffix(group.Title, ":")))
		for _, c := range root.Commands() {
			if c.GroupID == group.ID && !c.Hidden {
				m.verb(c)
			}
		}
	}
	m.section("THE SHELL")
	m.prose(shell.Help)
	for _, d := range shell.DotCommands() {
		m.term(strings.TrimSpace(d.Name+" "+d.Args), d.Short)
	}
	m.section("ENVIRONMENT")
	for _, v := range environment {
		m.term(v[0], v[1])
	}
	m.section("EXIT STATUS")
	for _, v := range [][2]string{{"0", "done"}, {"1", "failed"}, {"2", "the command line was wrong"},
		{"3", "stored data is corrupt"}} {
		m.term(v[0], v[1])
	}
	_, err := m.WriteTo(w)
	return err
}

// environment are the environment variables of fddhdb.
var environment = [][2]string{
	{"FDDHDB_HISTORY", "the file of the lines of earlier shells; empty for none. Without it, fddhdb/history in XDG_STATE_HOME, else in the folder of the user's settings"},
	{"NO_COLOR", "if not empty, nothing is printed in colour"},
	{"TERM", "dumb: the terminal can neither edit lines nor show colours"},
	{"AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION",
		"for backups in a bucket, among what else the tools of AWS look at"},
}

type manPage struct{ bytes.Buffer }

func (m *manPage) line(s string) { m.WriteString(s + "\n") }

func (m *manPage) section(title string) { m.line(".SH " + roff(title)) }

// term writes a name and its meaning.
func (m *manPage) term(name, what string) {
	m.line(".TP")
	m.line(`\fB` + roff(name) + `\fR`)
	m.line(roff(what))
}

func (m *manPage) verb(c *cobra.Command) {
	m.line(".SS fddhdb " + roff(c.Use))
	m.prose(c.Long)
	m.flags(c.LocalFlags())
	m.prose(c.Example)
}

func (m *manPage) flags(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if !slices.Contains([]string{"", "0", "false", "[]"}, f.DefValue) {
			usage += " (default " + f.DefValue + ")"
		}
		m.line(".TP")
		m.line(strings.TrimSpace(fmt.Sprintf(`\fB%s\fR \fI%s\fR`, roff(name), roff(value))))
		m.line(roff(usage))
	})
}

// prose writes paragraphs. Indented lines are a list or an example and stay unchanged.
func (m *manPage) prose(text string) {
	if text == "" {
		return
	}
	m.line(".PP")
	asIs, empty := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n ")
		if line == "" {
			empty = true
			continue
		}
		if indented := strings.HasPrefix(line, " "); indented != asIs {
			asIs = indented
			m.line(map[bool]string{true: ".RS 2\n.nf", false: ".fi\n.RE"}[asIs])
			empty = empty && asIs
			if !asIs {
				m.line(".PP")
			}
		} else if empty && !asIs {
			m.line(".PP")
			empty = false
		}
		if empty {
			m.line(".sp")
			empty = false
		}
		m.line(roff(strings.TrimPrefix(line, "  ")))
	}
	if asIs {
		m.line(".fi\n.RE")
	}
}

// roff escapes text so that no part of it is a request.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~",
		`\(ti`).Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return s
}
