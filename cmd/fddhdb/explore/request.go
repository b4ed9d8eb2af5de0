package explore

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/db"
)

// parameters are the parameters of a request. Its methods read one parameter each, and
// keep the first error.
type parameters struct {
	values url.Values
	known  []string // names that were read
	err    error
}

func (p *parameters) fail(format string, args ...any) {
	if p.err == nil {
		p.err = badRequest(format, args...)
	}
}

// text returns a parameter, or its default.
func (p *parameters) text(name, byDefault string) string {
	p.known = append(p.known, name)
	list, given := p.values[name]
	switch {
	case !given || len(list) == 0:
		return byDefault
	case len(list) > 1:
		p.fail("%s is given %d times", name, len(list))
	case !utf8.ValidString(list[0]):
		p.fail("%s is not UTF-8", name)
	}
	return list[0]
}

// number returns a parameter that is a whole number from least to most.
func (p *parameters) number(name string, byDefault, least, most int) int {
	s := p.text(name, "")
	if s == "" && !p.values.Has(name) {
		return byDefault
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > most {
		p.fail("%s=%.40q: a whole number from %d to %d is expected", name, s, least, most)
		return byDefault
	}
	return n
}

// similarity returns a least similarity as package db has it, where 0 is none: for 0 the
// negative number next to it, which admits the same.
func (p *parameters) similarity(name string) float32 {
	s := p.text(name, "")
	if s == "" {
		return 0
	}
	x, err := strconv.ParseFloat(s, 32)
	switch {
	case err != nil || math.IsNaN(x) || math.IsInf(x, 0): // what range it has, the order and the metric say
		p.fail("%s=%.40q: a number is expected", name, s)
	case x == 0:
		return -math.SmallestNonzeroFloat32
	}
	return float32(x)
}

func (p *parameters) flag(name string) bool {
	switch s := p.text(name, "false"); s {
	case "true", "1":
		return true
	case "false", "0", "":
	default:
		p.fail("%s=%.40q: true or false is expected", name, s)
	}
	return false
}

// end returns the first error, or an error if there are unknown parameters.
func (p *parameters) end() error {
	for name := range p.values {
		if !slices.Contains(p.known, name) {
			p.fail("there is no parameter %.40q, but %s", name, strings.Join(p.known, ", "))
		}
	}
	return p.err
}

// place is the collection of a request, and its space.
type place struct {
	collection string
	space      db.Space // 0: the active space
}

func (p *parameters) place() place {
	return place{p.text("collection", "main"), db.Space(p.number("space", 0, 0, 1<<31-1))}
}

// A query is a search by parameters, which have the names of the flags of the verb.
type query struct {
	place
	from, to string

	// Exactly one of these is not empty.
	key, code, text, picture, upload string
	member                           string // of the upload
	row                              int    // of the upload
	file                             string // name of the picture, once it is known

	k, radius      int // radius -1: no radius
	rerank         db.Rerank
	minSimilarity  float32 // 0: none
	where, after   string
	explain, items bool
}

// parseQuery reads the parameters of a search, and checks them as far as possible
// without a database.
func parseQuery(v url.Values) (*query, error) {
	p := &parameters{values: v}
	q := &query{
		place: p.place(),
		from:  p.text("from", ""), to: p.text("to", ""),
		key: p.text("key", ""), code: p.text("code", ""), text: p.text("text", ""),
		picture: p.text("picture", ""), upload: p.text("upload", ""),
		member: p.text("member", ""), row: p.number("row", 0, 0, 1<<31-1),
		k: p.number("k", 10, 1, maxK), radius: p.number("radius", -1, 0, 1<<20),
		minSimilarity: p.similarity("min-similarity"),
		where:         p.text("where", ""), after: p.text("after", ""),
		explain: p.flag("explain"), items: p.flag("items"),
	}
	rerank, err := db.ParseRerank(p.text("rerank", db.RerankAuto.String()))
	if err := p.end(); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	q.rerank = rerank
	given := 0
	for _, s := range []string{q.key, q.code, q.text, q.picture, q.upload} {
		if s != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, badRequest("a search has one of key, code, text, picture and upload, this one has %d",
			given)
	case q.text+q.picture != "" && q.from == "":
		return nil, badRequest("from is missing: the modality whose encoder the text or picture is for")
	case len(q.text) > maxText:
		return nil, badRequest("a text of %d bytes: at most %d are possible", len(q.text), maxText)
	case q.code != "" && q.from != "":
		return nil, badRequest("from=%q: a query by code is of no modality", q.from)
	case q.upload == "" && (v.Has("row") || q.member != ""):
		return nil, badRequest("row and member are of an upload, which is not given")
	case q.minSimilarity != 0 && q.rerank == db.RerankNone:
		return nil, badRequest("min-similarity has no meaning with rerank=none, which compares nothing")
	case q.minSimilarity != 0 && q.code != "":
		return nil, badRequest("min-similarity compares vectors, and a query by code has none")
	}
	return q, nil
}
