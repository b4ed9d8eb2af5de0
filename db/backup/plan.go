package backup

import (
	"context"
	"encoding/json"
	"time"
)

// maxPlan bounds the objects that a plan of a prune names, and with it the time between
// a look at the manifests and what is deleted by it. Tests have less.
var maxPlan = 20_000

// A plan is what a prune is about to delete, or is deleting. It is put once; a prune that
// has more to delete has several. An empty one is put for its time only.
type plan struct {
	Version int     `json:"version"`
	ID      string  `json:"id"`
	Objects []Piece `json:"objects"`
}

// plans reads all plans, and when each was put.
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
			continue // it is done
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

// condemned returns all objects that plans name.
func condemned(ctx context.Context, s Store) (map[Piece]struct{}, error) {
	all, _, err := plans(ctx, s)
	if err != nil {
		return nil, err
	}
	return named(all), nil
}

// named returns what plans name.
func named(all []plan) map[Piece]struct{} {
	doomed := map[Piece]struct{}{}
	for _, p := range all {
		for _, o := range p.Objects {
			doomed[o] = struct{}{}
		}
	}
	return doomed
}
