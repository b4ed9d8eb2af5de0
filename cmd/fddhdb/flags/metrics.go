package flags

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db"
)

// Metrics are the flags that say how vectors of modalities are compared where nothing is trained.
type Metrics struct{ Metric, SpaceOf NamedList }

// Register adds the flags.
func (m *Metrics) Register(f *pflag.FlagSet) {
	m.Metric.Kind, m.SpaceOf.Kind = "NAME=METRIC", "NAME=OTHER"
	f.Var(&m.Metric, "metric", "how vectors of a modality are compared before training: by cosine, dot or l2; repeat it for each")
	f.Var(&m.SpaceOf, "space-of", "a modality, and another that shares its space; repeat it for each")
}

// Given reports whether one of them is given.
func (m *Metrics) Given() bool { return len(m.Metric.List)+len(m.SpaceOf.List) > 0 }

// Declare gives modalities that are to be made what the flags say of them.
func (m *Metrics) Declare(modalities []db.Modality) error {
	of := func(flag string, n Named) (*db.Modality, error) {
		i := slices.IndexFunc(modalities, func(o db.Modality) bool { return o.Name == n.Name })
		if i < 0 {
			return nil, exit.Usagef("%s %s=%s: there is no --modality %s", flag, n.Name, n.Value, n.Name)
		}
		return &modalities[i], nil
	}
	for _, n := range m.Metric.List {
		o, err := of("--metric", n)
		if err != nil {
			return err
		}
		o.Metric = db.Metric(n.Value)
	}
	for _, n := range m.SpaceOf.List {
		o, err := of("--space-of", n)
		if err != nil {
			return err
		}
		o.SpaceOf = n.Value
	}
	return nil
}

// Alter adds what the flags say to an alteration.
func (m *Metrics) Alter(a *db.Alteration) {
	a.Metrics, a.SpaceOf = map[string]db.Metric{}, map[string]string{}
	for _, n := range m.Metric.List {
		a.Metrics[n.Name] = db.Metric(n.Value)
	}
	for _, n := range m.SpaceOf.List {
		a.SpaceOf[n.Name] = n.Value
	}
}
