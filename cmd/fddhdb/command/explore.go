package command

import (
	"errors"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/explore"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/picture"
)

func exploreCommand(e *env) *cobra.Command {
	v := e.verb(groupLook, "explore DIR", "Look at a database in the browser", `
		Explore serves a page on this machine, prints its address, and goes on until
		Ctrl-C: search by item, by code, by a row of a file, by text or by picture; look
		at hits, at how far all items are from the query and how the answer was found; at
		models and their drift, and at figures. Nothing is changed. The same is there as
		JSON under /api, see docs/EXPLORE.md.

		Only this machine is served, and everybody who works on it: whoever reaches the
		port reads what is in the database.

		The page searches for text by the encoders of texts that the collections have, and
		for a picture that you drop on it by an encoder of files (see encoder).

		Pictures of items are those in payloads and in fields; with --pictures also files
		below a folder, which a field of an item or its key names, as for the sheets of
		search.`, `
		fddhdb explore wiki.db --open
		fddhdb explore wiki.db --address 127.0.0.1:8080
		fddhdb explore photos.db --pictures ~/Photos --open`)
	v.onAnyCollection("begin with the collection `NAME`")
	var pictures, address string
	var open bool
	v.f.StringVar(&pictures, "pictures", "", "show the pictures below the folder `DIR` that items name")
	v.f.StringVar(&address, "address", "127.0.0.1:0",
		"serve on `HOST:PORT` of this machine; port 0 is a free one")
	v.f.BoolVar(&open, "open", false, "open the page in the browser")
	return v.does(func() error {
		if err := explore.CheckAddress(address); err != nil {
			return exit.Usagef("--address %q: %w", address, err)
		}
		return v.share(func() error { return v.explore(address, pictures, open) })
	})
}

// explore serves the page until the context ends.
func (v *verb) explore(address, folder string, open bool) (err error) {
	d, err := v.owner("explore")
	if err != nil {
		return err
	}
	pictures, err := picture.OpenFolder(folder, explore.IsPicture)
	if err != nil {
		return err
	}
	defer pictures.Close()
	encoders, err := v.storedEncoders()
	if err != nil {
		return err
	}
	name := v.dir
	if abs, err := filepath.Abs(name); err == nil {
		name = filepath.Base(abs)
	}
	s, err := explore.New(d, explore.Options{
		Name: name, Version: version(debug.ReadBuildInfo()).Version, Encoders: encoders, Pictures: pictures,
		Report: func(fault string) { v.Warnf("%s", fault) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	l, err := net.Listen("tcp", address)
	if err != nil {
		return exit.Failedf("--address %s: %w: give another port, or 0 for a free one", address, err)
	}
	page := url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/"}
	if v.c != nil {
		page.RawQuery = url.Values{"collection": {v.collection}}.Encode()
	}
	err = v.tell(map[string]string{"url": page.String()}, "%s", &page)
	if err = errors.Join(err, v.Stdout.Flush()); err != nil {
		return errors.Join(err, l.Close())
	}
	v.Notef("Ctrl-C ends it.")
	if open {
		if err := openBrowser(page.String()); err != nil {
			v.Warnf("--open: %v: open %s yourself", err, &page)
		}
	}
	return s.Serve(v.ctx, l)
}

// storedEncoders returns the encoders that the collections have and the user trusts. It
// prints a warning for each of the others.
func (v *verb) storedEncoders() (all []encoder.Stored, err error) {
	names, err := v.d.Collections(v.ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		c, err := v.d.Collection(v.ctx, name)
		if err != nil {
			return nil, err
		}
		schema, err := c.Schema(v.ctx)
		if err != nil {
			return nil, err
		}
		for i := range schema.Encoders {
			stored := &schema.Encoders[i]
			p, err := trusted(v.dir, name, stored)
			if err != nil {
				v.Warnf("%s", exit.Message(err))
				continue
			}
			all = append(all, encoder.Stored{Program: p, Collection: name, Input: stored.Input})
		}
	}
	return all, nil
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
