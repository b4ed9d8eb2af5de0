package command

import (
	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

func upgradeCommand(e *env) *cobra.Command {
	var o common
	var dry bool
	cmd := &cobra.Command{
		Use:     "upgrade DIR",
		Short:   "Bring a database to the newest format",
		GroupID: groupLook,
		Long: usage.Prose(`
			Upgrade brings a database to the newest format that this version knows. Nothing
			else does: whatever else is done with a database leaves its format as it is, so that
			older versions of fddhdb go on opening it. After an upgrade they cannot, and there
			is no way back: make a copy first. An upgrade that is interrupted leaves
			a database that is as good as before; the next one goes on.

			With --dry-run it only says what it would do. The formats are described in
			docs/FORMAT.md.`),
		Example: usage.Example(`
			fddhdb upgrade wiki.db --dry-run
			fddhdb upgrade wiki.db`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := args[0]
			out := upgradeJSON{Migrations: []db.Migration{}, DryRun: dry}
			err := e.whileClosed(dir, func() error {
				from, pending, err := db.PendingMigrations(cmd.Context(), dir, nil)
				if err != nil {
					return err
				}
				out.From, out.To = from, from
				step := func(_ string, done, _ int64) {
					m := pending[done]
					out.To, out.Migrations = m.To, append(out.Migrations, m)
					if !o.json {
						e.Printf("format %d: %s\n", m.To, m.What)
					}
				}
				if !dry {
					_, out.To, err = db.Upgrade(cmd.Context(), dir, nil, db.UpgradeOptions{Progress: step})
					return err
				}
				for i := range pending {
					step("", int64(i), 0)
				}
				return nil
			})
			switch {
			case err != nil:
				return openError(dir, err)
			case o.json:
				return e.PrintJSON(out)
			case out.From == out.To:
				e.Printf("format %d is the newest: nothing to do\n", out.From)
			case dry:
				e.Printf("from format %d to %d, if it were done\n", out.From, out.To)
			default:
				e.Printf("from format %d to %d\n", out.From, out.To)
			}
			return nil
		},
	}
	o.registerJSON(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would be done")
	return cmd
}

// upgradeJSON is the --json form of upgrade.
type upgradeJSON struct {
	From       int            `json:"from"`
	To         int            `json:"to"`
	Migrations []db.Migration `json:"migrations"`
	DryRun     bool           `json:"dry_run"`
}
