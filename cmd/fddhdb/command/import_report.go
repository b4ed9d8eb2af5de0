package command

import "fmt"

func (e *env) reportImport(l *loader, took float64) error {
	rate := 0.0
	if took > 0 {
		rate = float64(l.items-l.before) / took
	}
	if l.o.json {
		return e.printJSON(struct {
			Items   int              `json:"items"`
			Skipped int              `json:"skipped"`
			Seconds float64          `json:"seconds"`
			Rate    float64          `json:"items_per_second"`
			DryRun  bool             `json:"dry_run,omitempty"`
			From    int              `json:"resumed_at,omitempty"`
			Reasons []*skippedReason `json:"skipped_reasons,omitempty"`
		}{l.items, l.skipped.n, took, rate, l.o.dryRun, l.from, l.skipped.groups})
	}
	if l.created != nil && l.whole != nil {
		// What was found in the data is not what the user has written down.
		e.printf("collection %s, from %s: %s\n", l.o.collection, l.o.items, describeSchema(*l.created))
	}
	skipped := ""
	if l.skipped.n > 0 {
		skipped = fmt.Sprintf(", skipped %s", thousands(l.skipped.n))
	}
	if l.o.dryRun {
		e.printf("%s can be imported%s; nothing was stored\n", plural(l.items, "item", "items"), skipped)
		return nil
	}
	e.printf("imported %s%s in %s\n", plural(l.items, "item", "items"), skipped, seconds(took))
	return nil
}
