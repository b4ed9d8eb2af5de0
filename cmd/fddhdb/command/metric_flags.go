package command

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/db"
)

// metricFlags say how vectors of modalities are compared where nothing is trained.
type metricFlags struct{ metrics, spaceOf flags.NamedList }

func (m *metricFlags) register(cmd *cobra.Command) {
	m.metrics.Kind, m.spaceOf.Kind = "NAME=METRIC", "NAME=OTHER"
	cmd.Flags().Var(&m.metrics, "metric", "how vectors of a modality are compared before training: by cosine, dot or l2; repeat it for each")
	cmd.Flags().Var(&m.spaceOf, "space-of", "a modality, and another that shares its space; repeat it for each")
}

func (m *metricFlags) given() bool { return len(m.metrics.List)+len(m.spaceOf.List) > 0 }

// declare gives modalities that are to be made what the flags say of them.
func (m *metricFlags) declare(modalities []db.Modality) error {
	of := func(flag string, n flags.Named) (*db.Modality, error) {
		i := slices.IndexFunc(modalities, func(o db.Modality) bool { return o.Name == n.Name })
		if i < 0 {
			return nil, exit.Usagef("%s %s=%s: there is no --modality %s", flag, n.Name, n.Value, n.Name)
		}
		return &modalities[i], nil
	}
	for _, n := range m.metrics.List {
		o, err := of("--metric", n)
		if err != nil {
			return err
		}
		o.Metric = db.Metric(n.Value)
	}
	for _, n := range m.spaceOf.List {
		o, err := of("--space-of", n)
		if err != nil {
			return err
		}
		o.SpaceOf = n.Value
	}
	return nil
}

// alter adds what the flags say to an alteration.
func (m *metricFlags) alter(a *db.Alteration) {
	a.Metrics, a.SpaceOf = map[string]db.Metric{}, map[string]string{}
	for _, n := range m.metrics.List {
		a.Metrics[n.Name] = db.Metric(n.Value)
	}
	for _, n := range m.spaceOf.List {
		a.SpaceOf[n.Name] = n.Value
	}
}
