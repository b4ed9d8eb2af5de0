package report

// An Explain tells how a query was answered.
type Explain struct {
	Plan       string `json:"plan"`       // "vectors" where nothing is trained: Scanned vectors were compared, Compared of them read; "cells" by an index of vectors
	Substrings []int  `json:"substrings"` // tables of each segment of the index; empty where there is none
	Probes     int    `json:"probes"`     // buckets, postings, or cells, that were looked up
	Candidates int    `json:"candidates"` // codes in them, each time one is there; of cells, vectors that may be hits
	Compared   int    `json:"compared"`   // of these, read and compared with the query
	Scanned    int    `json:"scanned"`    // codes read one after the other
	Tail       int    `json:"tail"`       // among them those that are not indexed yet
	Abandoned  bool   `json:"abandoned"`  // lookups, or an index of vectors, were given up for a scan of all
	Codes      int    `json:"codes"`      // distinct codes found
	Hits       int    `json:"hits"`       // items returned
	Distinct   int    `json:"distinct"`   // codes in the collection

	// Rerank is what puts the hits in order: projection, asymmetric or none; "vectors within codes" where
	// vectors decide between items that share a code; "vectors" where they decide alone.
	Rerank string `json:"rerank"`

	// Where nothing is trained, the metric, and the modalities whose vectors were compared with that
	// of the query; else absent.
	Metric     string   `json:"metric,omitempty"`
	Modalities []string `json:"modalities,omitempty"`

	// Recall is what an index of vectors is expected to find of the first K; absent where the answer is
	// exact.
	Recall float64 `json:"recall,omitempty"`

	// DamagedIndexes are the modalities whose index of vectors cannot be read, so that all of their vectors
	// were compared.
	DamagedIndexes []string `json:"damaged_indexes,omitempty"`

	// OutgrownIndexes are the modalities of which so many vectors have come, changed or gone since their
	// index was made that all of their vectors were compared (VectorIndex.Outgrown).
	OutgrownIndexes []string `json:"outgrown_indexes,omitempty"`

	// ScannedFields are the fields that the filter compares and that have no index: their values are read
	// from the items, unless a search in the same state has left the rows of the filter.
	ScannedFields []string `json:"scanned_fields,omitempty"`

	// Predicted is the time of finding the codes for each plan that could have
	// been chosen, in microseconds; of a k-NN search by lookups only its
	// beginning, as the rest depends on what is found.
	Predicted map[string]float64 `json:"predicted_us"`

	EncodeUS  float64 `json:"encode_us"`  // from the query to its code
	SearchUS  float64 `json:"search_us"`  // finding the codes
	ResolveUS float64 `json:"resolve_us"` // items of the codes, in order, with keys
	KeysUS    float64 `json:"keys_us"`    // of ResolveUS, reading the keys
}
