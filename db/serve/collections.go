package serve

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/fddhdb/fddhdb/codec/perceptual"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// Paths that many routes have.
const (
	ofDatabase   = "/v1/{database}"
	ofCollection = "/v1/{database}/collections/{collection}"
)

// Parameters that many routes have.
var (
	inSpace = []parameter{
		{"space", "look at the codes of this space; default: the active one", "integer", math.MaxUint32},
		{"revision", "encode queries by this revision of the space; default: the one in use", "integer",
			math.MaxUint32},
	}
	filtered = []parameter{
		{"where", "only items that match", "string", 0},
		{"args", "the values of the placeholders ? in where, as a JSON array", "string", 0},
	}
)

// register returns the routes of the server.
func (s *Server) register() *router {
	t := &router{mux: http.NewServeMux(), verbs: map[string]bool{}}
	s.registerDatabases(t)
	registerCollections(t)
	registerItems(t)
	registerBulk(t)
	registerSearches(t)
	registerMany(t)
	registerAlike(t)
	registerEncoding(t)
	registerCards(t)
	registerMap(t)
	registerModels(t)
	registerJobs(t)
	s.registerOpen(t)
	s.registerMetrics(t)
	return t
}

// registerDatabases adds the routes about whole databases.
func (s *Server) registerDatabases(t *router) {
	handle(t, "GET", "/v1", Read, "List the databases",
		func(_ context.Context, r *request, _ *none) (*rest.Databases, error) {
			names := slices.DeleteFunc(s.Names(), func(name string) bool { return !r.access.knows(name) })
			return &rest.Databases{Databases: names, Version: s.opt.Version,
				Scope: r.access.Scope.String()}, nil
		}).forEach = true
	figures := of(t, "GET", ofDatabase, Read, "Show figures about a database and its collections",
		func(ctx context.Context, d api.Database, r *request, _ *none) (*db.Stats, error) {
			if r.flag("loaded") {
				if err := d.WaitForIndex(ctx); err != nil {
					return nil, err
				}
			}
			all, err := d.Stats(ctx)
			if err != nil || len(r.access.Collections) == 0 {
				return all, err
			}
			// A token of some collections has the figures of these alone.
			some := &db.Stats{Format: all.Format, Kernel: all.Kernel, Collections: []db.CollectionStats{}}
			for _, c := range all.Collections {
				if r.access.sees(c.Name) {
					some.Items += c.Items
					some.DistinctCodes += c.DistinctCodes
					some.Collections = append(some.Collections, c)
				}
			}
			return some, nil
		}, parameter{"loaded", "wait until all codes are in memory", "boolean", 0})
	figures.untimed, figures.forEach = true, true
	of(t, "GET", ofDatabase+"/marks/{mark}", Read, "Read the bytes that a batch has kept under a name",
		func(ctx context.Context, d api.Database, r *request, _ *none) (*rest.Mark, error) {
			value, err := d.Mark(ctx, r.PathValue("mark"))
			return &rest.Mark{Name: r.PathValue("mark"), Value: value}, err
		})
	handleJob(t, "POST", ofDatabase+":compact", Admin,
		"Rewrite the files of the database without what is obsolete",
		func(_ context.Context, r *request, _ *none) (func(context.Context, telling) (*none, error), error) {
			d, err := r.database()
			return func(ctx context.Context, _ telling) (*none, error) { return &none{}, d.Compact(ctx) }, err
		})
	handleJob(t, "POST", ofDatabase+":verify", Admin,
		"Read everything and look for damage; each finding is an event",
		func(_ context.Context, r *request, in *db.VerifyOptions) (
			func(context.Context, telling) (*rest.Verification, error), error) {
			d, err := r.database()
			return func(ctx context.Context, t telling) (*rest.Verification, error) {
				in.Progress = t.progress
				v, err := d.Verify(ctx, *in, func(f report.Finding) error {
					t.event("finding", f)
					return nil
				})
				if err != nil {
					return nil, err
				}
				return &rest.Verification{Verification: v, Findings: v.Findings}, nil
			}, err
		})
	handleJob(t, "POST", ofDatabase+":backup", Admin, "Make a backup",
		func(_ context.Context, r *request, in *rest.Backup) (
			func(context.Context, telling) (*backup.Manifest, error), error) {
			d, err := r.database()
			if err == nil && in.URL == "" {
				err = fault.Invalid("url is missing: where to make the backup")
			}
			return func(ctx context.Context, t telling) (*backup.Manifest, error) {
				in.Progress = t.progress
				return d.Backup(ctx, in.URL, in.BackupOptions)
			}, err
		})
}

// registerCollections adds the routes about collections as such.
func registerCollections(t *router) {
	of(t, "GET", ofDatabase+"/collections", Read, "List the collections",
		func(ctx context.Context, d api.Database, r *request, _ *none) (*rest.Collections, error) {
			names, err := d.Collections(ctx)
			out := &rest.Collections{Collections: []string{}}
			for _, name := range names {
				if r.access.sees(name) {
					out.Collections = append(out.Collections, name)
				}
			}
			return out, err
		}).forEach = true
	on(t, "GET", ofCollection, Read, "Show a collection and its schema",
		func(ctx context.Context, c api.Collection, r *request, _ *none) (*rest.Collection, error) {
			schema, err := c.Schema(ctx)
			database := r.PathValue("database")
			out := &rest.Collection{Name: c.Name(), ID: c.ID(), Schema: schema,
				Texts: r.s.modalitiesOf(database, c.Name(), db.InputText),
				Files: r.s.modalitiesOf(database, c.Name(), db.InputFile), Hashed: r.s.hashed(&schema)}
			if hash := perceptual.Named(schema.Hash); hash != nil {
				out.Near = hash.Near
			}
			return out, err
		}, inSpace...)
	of(t, "PUT", ofCollection, Admin, "Create a collection",
		func(ctx context.Context, d api.Database, r *request, in *db.Schema) (*rest.Collection, error) {
			c, err := d.CreateCollection(ctx, r.PathValue("collection"), *in)
			if err != nil {
				return nil, err
			}
			schema, err := c.Schema(ctx)
			return &rest.Collection{Name: c.Name(), ID: c.ID(), Schema: schema}, err
		})
	on(t, "PATCH", ofCollection, Admin, "Add modalities and fields, index fields, change metrics or encoders",
		func(ctx context.Context, c api.Collection, r *request, in *db.Alteration) (*none, error) {
			return nil, c.Alter(ctx, *in)
		})
	of(t, "DELETE", ofCollection, Admin, "Delete a collection with all of its items",
		func(ctx context.Context, d api.Database, r *request, _ *none) (*none, error) {
			return nil, d.DropCollection(ctx, r.PathValue("collection"))
		})
	on(t, "GET", ofCollection+"/stats", Read, "Show figures about a collection",
		func(ctx context.Context, c api.Collection, r *request, _ *none) (*db.CollectionStats, error) {
			var also []db.Figure
			if r.flag("disk") {
				also = append(also, db.DiskSize)
			}
			if r.flag("drift") {
				also = append(also, db.MeasuredDrift)
			}
			return c.Stats(ctx, also...)
		}, append([]parameter{
			{"disk", "estimate the bytes on disk", "boolean", 0},
			{"drift", "measure how far later items are from those of the training", "boolean", 0},
		}, inSpace...)...)
	on(t, "GET", ofCollection+"/labels", Read, "List the labels of items",
		func(ctx context.Context, c api.Collection, r *request, _ *none) (*rest.Labels, error) {
			labels, err := c.Labels(ctx)
			if labels == nil {
				labels = []string{}
			}
			return &rest.Labels{Labels: labels}, err
		})
	on(t, "POST", ofCollection+":rename-label", Write, "Give a label another name",
		func(ctx context.Context, c api.Collection, r *request, in *rest.Renaming) (*none, error) {
			return nil, c.RenameLabel(ctx, in.Old, in.New)
		})
}

// registerSearches adds the routes that find and count.
func registerSearches(t *router) {
	search := func(verb, summary string, find func(context.Context, api.Collection, *rest.Query,
		db.Query) (*db.Result, error)) {
		handle(t, "POST", ofCollection+":"+verb, Read, summary,
			func(ctx context.Context, r *request, in *rest.Query) (out *db.Result, err error) {
				err = r.asks(ctx, in, func(ctx context.Context, c api.Collection, q db.Query) (err error) {
					if out, err = find(ctx, c, in, q); err == nil && in.FacetLimit > 0 {
						for i, f := range out.Facets {
							out.Facets[i].Counts = f.Counts[:min(in.FacetLimit, len(f.Counts))]
						}
					}
					return err
				})
				return out, err
			}, inSpace...)
	}
	search("search", "Find the nearest items", func(ctx context.Context, c api.Collection, in *rest.Query,
		q db.Query) (*db.Result, error) {
		if in.Radius != nil {
			return nil, fault.Invalid("radius: POST to :radius finds the items within a radius")
		}
		return c.Search(ctx, q)
	})
	search("radius", "Find the items within a radius: the first k, and the number of all",
		func(ctx context.Context, c api.Collection, in *rest.Query, q db.Query) (*db.Result, error) {
			if in.Radius == nil {
				return nil, fault.Invalid("radius is missing: a number of bits")
			}
			return c.SearchRadius(ctx, q, *in.Radius)
		})
	on(t, "POST", ofCollection+":count", Read, "Count the items that match",
		func(ctx context.Context, c api.Collection, r *request, in *rest.Filter) (*rest.Count, error) {
			n, err := c.Count(ctx, in.Where, in.Args...)
			return &rest.Count{Count: n}, err
		}, inSpace...)
	on(t, "POST", ofCollection+":facets", Read, "Count items by label, or by the values of a field",
		func(ctx context.Context, c api.Collection, r *request, in *rest.Facets) (*db.Facets, error) {
			return c.Facets(ctx, db.FacetQuery{By: in.By, Where: in.Where, Args: in.Args, Limit: in.Limit})
		}, inSpace...)
}

// registerModels adds the routes about models, spaces of codes and indexes of vectors.
func registerModels(t *router) {
	on(t, "GET", ofCollection+"/spaces", Read, "List the spaces of codes and their revisions",
		func(ctx context.Context, c api.Collection, r *request, _ *none) (*rest.Spaces, error) {
			spaces, err := c.Spaces(ctx)
			if spaces == nil {
				spaces = []report.SpaceInfo{}
			}
			return &rest.Spaces{Spaces: spaces}, err
		})
	handle(t, "DELETE", ofCollection+"/spaces/{space}", Admin, "Delete a space of codes",
		func(ctx context.Context, r *request, _ *none) (*none, error) {
			space, err := strconv.ParseUint(r.PathValue("space"), 10, 32)
			if err != nil {
				return nil, fault.NotFound("space %q: a number is expected", r.PathValue("space"))
			}
			c, err := r.collection(ctx)
			if err != nil {
				return nil, err
			}
			return nil, c.DropSpace(ctx, db.Space(space))
		})
	learns(t, "train", "Learn a model, and make codes of all items",
		func(ctx context.Context, c api.Collection, in *db.TrainOptions, t telling) (*report.Training,
			error) {
			in.Progress = t.progress
			return c.Train(ctx, *in)
		})
	learns(t, "update", "Let the model learn from the items since its training",
		func(ctx context.Context, c api.Collection, in *db.UpdateOptions, t telling) (*report.Update, error) {
			in.Progress = t.progress
			return c.Update(ctx, *in)
		})
	learns(t, "reindex", "Make the codes of all items again, in a new space",
		func(ctx context.Context, c api.Collection, in *db.ReindexOptions, t telling) (*report.Reindexing,
			error) {
			in.Progress = t.progress
			return c.Reindex(ctx, *in)
		})
	learns(t, "index", "Make an index of the vectors of a modality",
		func(ctx context.Context, c api.Collection, in *db.IndexOptions, t telling) (*report.VectorIndex,
			error) {
			in.Progress = t.progress
			return c.IndexVectors(ctx, *in)
		})
	learns(t, "evaluate", "Measure retrieval with queries whose labels are known",
		func(ctx context.Context, c api.Collection, in *rest.Evaluation, _ telling) (*rest.Retrievals,
			error) {
			e, err := in.Evaluation()
			if err != nil {
				return nil, err
			}
			all, err := c.Evaluate(ctx, e)
			if all == nil {
				all = []report.Retrieval{}
			}
			return &rest.Retrievals{Retrievals: all}, err
		})
	on(t, "POST", ofCollection+":activate", Admin, "Make another space of codes the active one",
		func(ctx context.Context, c api.Collection, r *request, in *rest.Space) (*none, error) {
			return nil, c.Activate(ctx, in.Space)
		})
	on(t, "POST", ofCollection+":rollback", Admin, "Make the space that was active before active again",
		func(ctx context.Context, c api.Collection, r *request, _ *none) (*rest.Space, error) {
			space, err := c.Rollback(ctx)
			return &rest.Space{Space: space}, err
		})
	on(t, "POST", ofCollection+":restore-revision", Admin, "Put an earlier revision of a space back in use",
		func(ctx context.Context, c api.Collection, r *request, in *rest.Revision) (*report.Update, error) {
			return c.RestoreRevision(ctx, in.Space, in.Revision)
		})
	on(t, "DELETE", ofCollection+"/indexes/{modality}", Write, "Delete an index of vectors",
		func(ctx context.Context, c api.Collection, r *request, _ *none) (*none, error) {
			return nil, c.DropVectorIndex(ctx, r.PathValue("modality"))
		})
}

// learns adds a job on a collection.
func learns[I, O any](t *router, verb, summary string,
	run func(ctx context.Context, c api.Collection, in *I, t telling) (*O, error)) *route {
	return handleJob(t, "POST", ofCollection+":"+verb, Write, summary,
		func(ctx context.Context, r *request, in *I) (func(context.Context, telling) (*O, error), error) {
			c, err := r.collection(ctx)
			return func(ctx context.Context, t telling) (*O, error) { return run(ctx, c, in, t) }, err
		}, inSpace...)
}
