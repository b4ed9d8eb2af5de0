package command

import (
	"errors"
	"net/url"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/server"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/serve"
)

func exploreCommand(e *env) *cobra.Command {
	v := e.verb(groupServe, "explore DIR", "Look at a database in the browser", `
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
	v.onAnyCollection("begin with the collection `NAME`")
	o := server.Flags{ReadOnly: true}
	var open, write bool
	v.f.StringVar(&o.Address, "address", "127.0.0.1:0",
		"serve on `HOST:PORT` of this machine; port 0 is a free one")
	o.RegisterPage(v.f)
	v.f.BoolVar(&open, "open", false, "open the page in the browser")
	v.f.BoolVar(&write, "write", false, "let the page change the database")
	return v.does(func() error {
		if isURL(v.dir) {
			return exit.Usagef("the server has the page itself: open %s in a browser", v.dir)
		}
		if !serve.IsLoopback(o.Address) {
			return exit.Usagef("--address %q: a port of this machine is expected, such as 127.0.0.1:8080; fddhdb serve serves others, with tokens",
				o.Address)
		}
		if o.ReadOnly = !write; o.ReadOnly {
			return v.share(func() error { return v.explore(&o, open) })
		}
		return v.change(func() error { return v.explore(&o, open) })
	})
}

// explore serves the page until the context ends.
func (v *verb) explore(o *server.Flags, open bool) error {
	files, err := o.Open()
	if err != nil {
		return err
	}
	name, err := nameOf(v.dir)
	if err != nil {
		name = childName // any folder can be looked at
	}
	if v.signals != nil {
		v.signals.Serving(server.Grace, func() {})
	}
	pool, err := v.encoders(v.dir, v.d)
	if err != nil {
		return err
	}
	encoders := server.Encoders{name: pool}
	defer encoders.Close()
	return files.Run(v.ctx, server.Config{Databases: map[string]api.Database{name: v.d}, Encoders: encoders,
		Log: v.Stderr, Ready: func(base string, _ []string) error {
			page := base + "/"
			if v.c != nil {
				page += "?" + url.Values{"collection": {v.collection}}.Encode()
			}
			err := v.tell(map[string]string{"url": page}, "%s", page)
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
