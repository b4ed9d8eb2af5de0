package command

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/explore"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/picture"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

// exploreOptions are the flags of explore.
type exploreOptions struct {
	common
	address  string
	open     bool
	pictures string // folder
}

func exploreCommand(e *env) *cobra.Command {
	var o exploreOptions
	cmd := &cobra.Command{
		Use:     "explore DIR",
		Short:   "Look at a database in the browser",
		GroupID: groupLook,
		Long: usage.Prose(`
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
			search.`),
		Example: usage.Example(`
			fddhdb explore wiki.db --open
			fddhdb explore wiki.db --address 127.0.0.1:8080
			fddhdb explore photos.db --pictures ~/Photos --open`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return e.lookAt(args[0], func(d *db.DB) error {
				return e.explore(cmd.Context(), args[0], d, &o)
			})
		},
	}
	o.register(cmd)
	cmd.Flags().Lookup("collection").Usage = "begin with the collection `NAME`"
	f := cmd.Flags()
	f.StringVar(&o.pictures, "pictures", "", "show the pictures below the folder `DIR` that items name")
	f.StringVar(&o.address, "address", "127.0.0.1:0",
		"serve on `HOST:PORT` of this machine; port 0 is a free one")
	f.BoolVar(&o.open, "open", false, "open the page in the browser")
	return cmd
}

// check refuses flags that are wrong for any database.
func (o *exploreOptions) check() error {
	if err := explore.CheckAddress(o.address); err != nil {
		return exit.Usagef("--address %q: %w", o.address, err)
	}
	return nil
}

// explore serves the page until the context ends.
func (e *env) explore(ctx context.Context, dir string, d *db.DB, o *exploreOptions) (err error) {
	if o.collection != "main" {
		if _, err := collection(d, o.collection); err != nil {
			return err
		}
	}
	pictures, err := picture.OpenFolder(o.pictures, explore.IsPicture)
	if err != nil {
		return err
	}
	defer pictures.Close()
	encoders, err := e.storedEncoders(dir, d)
	if err != nil {
		return err
	}
	name := dir
	if abs, err := filepath.Abs(dir); err == nil {
		name = filepath.Base(abs)
	}
	s, err := explore.New(d, explore.Options{
		Name: name, Version: version(debug.ReadBuildInfo()).Version, Encoders: encoders, Pictures: pictures,
		OpenVectors: source.OpenMatrix, Message: exit.Message,
		Report: func(fault string) { e.Warnf("%s", fault) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	l, err := net.Listen("tcp", o.address)
	if err != nil {
		return exit.Failedf("--address %s: %w: give another port, or 0 for a free one", o.address, err)
	}
	page := url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/"}
	if o.collection != "main" {
		page.RawQuery = url.Values{"collection": {o.collection}}.Encode()
	}
	if err := e.announce(page.String(), o.json); err != nil {
		return errors.Join(err, l.Close())
	}
	if o.open {
		if err := openBrowser(page.String()); err != nil {
			e.Warnf("--open: %v: open %s yourself", err, page.String())
		}
	}
	return s.Serve(ctx, l)
}

// announce prints the address of the page, at once: the pager of a shell would hold it
// back.
func (e *env) announce(page string, asJSON bool) error {
	switch {
	case asJSON:
		if err := e.PrintJSON(map[string]string{"url": page}); err != nil {
			return err
		}
	case e.session != nil:
		e.Notef("%s", page)
	default:
		e.Printf("%s\n", page)
	}
	if err := e.Stdout.Flush(); err != nil {
		return err
	}
	e.Notef("Ctrl-C ends it.")
	return nil
}

// storedEncoders returns the encoders that the collections have and the user trusts. It
// prints a warning for each of the others.
func (e *env) storedEncoders(dir string, d *db.DB) (all []explore.Encoder, err error) {
	names, err := d.Collections()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		c, err := d.Collection(name)
		if err != nil {
			return nil, err
		}
		stored, err := c.Encoders()
		if err != nil {
			return nil, err
		}
		for i := range stored {
			if err := checkTrust(dir, name, &stored[i]); err != nil {
				e.Warnf("%s", exit.Message(err))
				continue
			}
			p, err := program(dir, &stored[i])
			if err != nil {
				return nil, err
			}
			all = append(all, explore.Encoder{Program: p, Collection: name, Input: stored[i].Input})
		}
	}
	return all, nil
}

// openBrowser opens a page in the user's browser.
func openBrowser(page string) error {
	var cmd *exec.Cmd
	switch runtime.GOOS {
	case "darwin":
		cmd = exec.Command("open", page)
	case "windows":
		cmd = exec.Command("rundll32", "url.dll,FileProtocolHandler", page)
	default:
		cmd = exec.Command("xdg-open", page)
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // the command may be the browser itself
	return nil
}
