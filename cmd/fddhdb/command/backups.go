package command

import (
	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db/backup"
)

func backupsCommand(e *env) *cobra.Command {
	var o common
	cmd := &cobra.Command{
		Use:     "backups URL",
		Short:   "List backups",
		GroupID: groupBackup,
		Long: usage.Prose(`
			Backups lists the backups that are kept in a place, the oldest first: when each was
			made, of which database (the beginning of its UUID), of what of it, its size, and
			how much of that no earlier backup had.

			With --json it prints an object a line.
` + repositoryHelp),
		Example: usage.Example(`
			fddhdb backups /mnt/backups/wiki
			fddhdb backups s3://my-bucket/wiki --json`),
		Args: urlArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := openRepository(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			list, err := backup.List(cmd.Context(), store)
			if err != nil {
				return repositoryError(args[0], err)
			}
			if !o.json {
				e.printBackups(list)
				return nil
			}
			for _, m := range list {
				if err := e.PrintJSON(newBackupJSON(m, 0)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	o.registerJSON(cmd)
	term.PrintsObjects(cmd)
	return cmd
}

func (e *env) printBackups(list []*backup.Manifest) {
	if len(list) == 0 {
		e.Printf("there are no backups\n")
		return
	}
	var rows [][]any
	for _, m := range list {
		rows = append(rows, []any{m.ID, term.TimeCell(m.Time), shortUUID(m), content(m), term.BytesCell(m.BytesTotal), term.BytesCell(m.BytesNew)})
	}
	e.PrintTable([]term.Column{term.Left("id"), term.Left("made"), term.Left("database"), term.Left("of"), term.Right("size"), term.Right("new")}, rows)
}
