package command

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db"
)

// metricFlags say how vectors of modalities are compared where nothing is trained.
type metricFlags struct{ metrics, spaceOf namedList }

func (m *metricFlags) register(cmd *cobra.Command) {
	m.metrics.kind, m.spaceOf.kind = "NAME=METRIC", "NAME=OTHER"
	cmd.Flags().Var(&m.metrics, "metric", "how vectors of a modality are compared before training: by cosine, dot or l2; repeat it for each")
	cmd.Flags().Var(&m.spaceOf, "space-of", "a modality, and another that shares its space; repeat it for each")
}

func (m *metricFlags) given() bool { return len(m.metrics.list)+len(m.spaceOf.list) > 0 }

// declare gives modalities that are to be made what the flags say of them.
func (m *metricFlags) declare(modalities []db.Modality) error {
	of := func(flag string, n named) (*db.Modality, error) {
		i := slices.IndexFunc(modalities, func(o db.Modality) bool { return o.Name == n.name })
		if i < 0 {
			return nil, exit.Usagef("%s %s=%s: there is no --modality %s", flag, n.name, n.value, n.name)
		}
		return &modalities[i], nil
	}
	for _, n := range m.metrics.list {
		o, err := of("--metric", n)
		if err != nil {
			return err
		}
		o.Metric = db.Metric(n.value)
	}
	for _, n := range m.spaceOf.list {
		o, err := of("--space-of", n)
		if err != nil {
			return err
		}
		o.SpaceOf = n.value
	}
	return nil
}

// alter adds what the flags say to an alteration.
func (m *metricFlags) alter(a *db.Alteration) {
	a.Metrics, a.SpaceOf = map[string]db.Metric{}, map[string]string{}
	for _, n := range m.metrics.list {
		a.Metrics[n.name] = db.Metric(n.value)
	}
	for _, n := range m.spaceOf.list {
		a.SpaceOf[n.name] = n.value
	}
}
