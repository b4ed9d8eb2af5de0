package command

import (
	"errors"
	"net/url"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/ingest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/server"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/serve"
)

func exploreCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupServe, "explore DIR", "Look at a database in the browser", `
		Explore serves a page on this machine, prints its address, and goes on until
		Ctrl-C: search by words, by item, by picture, by a row of a file or by code; look
		at hits, at a map of all items, at models and figures. With --write you can also
		insert, edit, label and delete items, and train. docs/EXPLORE.md describes the page.

		Everybody who works on this machine can do the same through the port. fddhdb serve
		has the page, too, for other machines, with tokens.

		The page makes vectors of words, and of pictures that you drop on it, by the encoders
		that the collections have (see encoder).`, `
		fddhdb explore wiki.db --open
		fddhdb explore wiki.db --address 127.0.0.1:8080 --write
		fddhdb explore photos.db --pictures ~/Photos --open`)
	v.OnAnyCollection("begin with the collection `NAME`")
	o := server.Flags{ReadOnly: true}
	var open, write bool
	v.Flags.StringVar(&o.Address, "address", "127.0.0.1:0",
		"serve on `HOST:PORT` of this machine; port 0 is a free one")
	o.RegisterPage(v.Flags)
	v.Flags.BoolVar(&open, "open", false, "open the page in the browser")
	v.Flags.BoolVar(&write, "write", false, "let the page change the database")
	return v.Does(func() error {
		if run.IsURL(v.Dir) {
			return exit.Usagef("the server has the page itself: open %s in a browser", v.Dir)
		}
		if !serve.IsLoopback(o.Address) {
			return exit.Usagef("--address %q: a port of this machine is expected, such as 127.0.0.1:8080; fddhdb serve serves others, with tokens",
				o.Address)
		}
		if o.ReadOnly = !write; o.ReadOnly {
			return v.Share(func() error { return explore(v, &o, open) })
		}
		return v.Change(func() error { return explore(v, &o, open) })
	})
}

// explore serves the page until the context ends.
func explore(v *run.Verb, o *server.Flags, open bool) error {
	files, err := o.Open()
	if err != nil {
		return err
	}
	name, err := nameOf(v.Dir)
	if err != nil {
		name = childName // any folder can be looked at
	}
	if v.Signals != nil {
		v.Signals.Serving(server.Grace, func() {})
	}
	pool, err := ingest.Encoders(v, v.Dir, v.DB)
	if err != nil {
		return err
	}
	encoders := server.Encoders{name: pool}
	defer encoders.Close()
	return files.Run(v.Ctx, server.Config{Databases: map[string]api.Database{name: v.DB}, Encoders: encoders,
		Log: v.Stderr, Ready: func(base string, _ []string) error {
			page := base + "/"
			if v.Collection != nil {
				page += "?" + url.Values{"collection": {v.CollectionName}}.Encode()
			}
			err := v.Tell(map[string]string{"url": page}, "%s", page)
			if err = errors.Join(err, v.Stdout.Flush()); err != nil {
				return err
			}
			v.Notef("Ctrl-C ends it.")
			if open {
				if err := openBrowser(page); err != nil {
					v.Warnf("--open: %v: open %s yourself", err, page)
				}
			}
			return nil
		}})
}

// openBrowser opens a page in the user's browser.
func openBrowser(page string) error {
	cmd := exec.Command("xdg-open", page)
	switch runtime.GOOS {
	case "darwin":
		cmd = exec.Command("open", page)
	case "windows":
		cmd = exec.Command("rundll32", "url.dll,FileProtocolHandler", page)
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // the command may be the browser itself
	return nil
}
