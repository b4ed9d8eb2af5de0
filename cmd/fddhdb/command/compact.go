package command

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/event"
)

func compactCommand(e *env) *cobra.Command {
	var o common
	cmd := &cobra.Command{
		Use:     "compact DIR",
		Short:   "Reclaim disk space",
		GroupID: groupLook,
		Long: usage.Prose(`
			Compact rewrites what is stored, of all collections, so that what was deleted or
			replaced no longer takes space. A database does that by itself, bit by bit; this
			does all of it at once.`),
		Example: usage.Example(`
			fddhdb compact wiki.db`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withDB(args[0], func(d *db.DB) error {
				before, err := d.Stats()
				if err != nil {
					return err
				}
				start := time.Now()
				bar := e.NewProgress()
				defer bar.End()
				if err := follow(bar, d, event.OpCompact, func() error { return d.Compact(cmd.Context()) }); err != nil {
					return err
				}
				bar.End()
				after, err := d.Stats()
				if err != nil {
					return err
				}
				// Files that wait for deletion do not count: they are deleted soon.
				was, is := before.Activity.Store.LiveBytes, after.Activity.Store.LiveBytes
				if o.json {
					return e.PrintJSON(compactJSON{was, is, time.Since(start).Seconds()})
				}
				e.Printf("%s before, %s now\n", term.Size(was), term.Size(is))
				return nil
			})
		},
	}
	o.registerJSON(cmd)
	return cmd
}

// compactJSON is the --json form of compact.
type compactJSON struct {
	BytesBefore int64   `json:"bytes_before"`
	BytesAfter  int64   `json:"bytes_after"`
	Seconds     float64 `json:"seconds"`
}
