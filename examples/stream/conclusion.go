package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"time"
)

// little is a difference of mAP that is not worth a training.
const little = .01

// printConclusion prints what the curves say about the choice between updating, training
// again and leaving a model alone. Here mAP is the mean of both directions and all seeds.
func printConclusion(w io.Writer, curves []*curve, s settings) error {
	of := func(labelled bool, name string) *curve {
		return curves[slices.IndexFunc(curves,
			func(c *curve) bool { return c.labelled == labelled && c.name == name })]
	}
	updated, never, trained := of(true, "updated"), of(true, "never updated"), of(true, "trained on all")
	out := bufio.NewWriter(w) // keeps the first error
	fmt.Fprintf(out, `
In short, by mAP of both directions together:
* Updates with labels keep %s of what a training on all %d items reaches (%s of %s).
  A model of the first %d that is left alone keeps %s.
* Updating took %s an item, training on all items %s.
* %s
* %s
`, percent(updated.last()/trained.last()), s.items, share(updated.last()), share(trained.last()),
		s.first(), percent(never.last()/trained.last()),
		short(updated.took/time.Duration(s.seeds*(s.items-s.first()))),
		short(trained.took/time.Duration(s.seeds)),
		whenToTrain(updated, trained.last()-updated.last()),
		withoutLabels(of(false, "never updated"), curves, updated.last()))
	return out.Flush()
}

// whenToTrain says from when on updates gain little, and what a training would gain then.
func whenToTrain(updated *curve, gain float64) string {
	if gain < little {
		return fmt.Sprintf("There is no need to train again: it would gain less than %s.", share(little))
	}
	at := slices.IndexFunc(updated.points, func(p point) bool { return updated.last()-p.mean() < little })
	if at == len(updated.points)-1 {
		return fmt.Sprintf("Updates still gain. Training again on all items gains %s more.", share(gain))
	}
	return fmt.Sprintf("From %d items on, updates gain less than %s. Train again then; on all %d items that gains %s.",
		updated.points[at].items, share(little), updated.points[len(updated.points)-1].items, share(gain))
}

// withoutLabels says what updates are worth if items come without labels, and what labels
// would be worth. labelled is mAP with them.
func withoutLabels(never *curve, curves []*curve, labelled float64) string {
	best := never
	for _, c := range curves {
		if !c.labelled && c.last() > best.last() {
			best = c
		}
	}
	text := fmt.Sprintf("If items come without labels, no update gains more than %s.", share(little))
	if gain := best.last() - never.last(); gain >= little {
		text = fmt.Sprintf("If items come without labels, the best updates, %q, gain %s.", best.name,
			share(gain))
	}
	if gain := labelled - best.last(); gain >= little {
		text += fmt.Sprintf(" Labels for them gain %s.", share(gain))
	}
	return text
}

// last returns mAP at the end.
func (c *curve) last() float64 { return c.points[len(c.points)-1].mean() }

// mean returns mAP over both directions and all seeds.
func (p point) mean() float64 { return (mean(p.maps[0]) + mean(p.maps[1])) / 2 }

func percent(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

// short formats a duration with two digits or so.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
