package backup

import (
	"context"
	"encoding/json"
	"time"
)

// maxPlan bounds the objects of a plan, and so the time between reading manifests and
// the last deletion. Tests lower it.
var maxPlan = 20_000

// A plan lists the objects that a prune is about to delete, or is deleting. It never
// changes; a prune with more to delete has several. An empty plan only shows the time
// of the store.
type plan struct {
	Version int     `json:"version"`
	ID      string  `json:"id"`
	Objects []Piece `json:"objects"`
}

// plans reads all plans, and the time at which each was put.
func plans(ctx context.Context, s Store) ([]plan, map[string]time.Time, error) {
	found, err := ids(ctx, s, pruning)
	if err != nil {
		return nil, nil, err
	}
	var all []plan
	for _, id := range sorted(found) {
		name := jsonName(pruning, id)
		b, err := read(ctx, s, name, maxManifest)
		if notThere(err) {
			continue // it has been removed
		}
		if err != nil {
			return nil, nil, err
		}
		var p plan
		if err := json.Unmarshal(b, &p); err != nil {
			return nil, nil, damaged("%s: %w", name, err)
		}
		if err := checkVersion(name, p.Version); err != nil {
			return nil, nil, err
		}
		p.ID = id
		all = append(all, p)
	}
	return all, found, nil
}

// condemned returns the objects of all plans.
func condemned(ctx context.Context, s Store) (map[Piece]struct{}, error) {
	all, _, err := plans(ctx, s)
	if err != nil {
		return nil, err
	}
	return named(all), nil
}

// named returns the objects of plans.
func named(all []plan) map[Piece]struct{} {
	doomed := map[Piece]struct{}{}
	for _, p := range all {
		for _, o := range p.Objects {
			doomed[o] = struct{}{}
		}
	}
	return doomed
}
