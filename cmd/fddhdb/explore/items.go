package explore

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/db"
)

// itemForm is an item in the form of get and scan, without its payload and, by default,
// its vectors; and everything that the page can show of it.
type itemForm struct {
	db.Item
	shownOf
}

// shownOf is what can be shown of an item.
type shownOf struct {
	PayloadBytes int    `json:"payload_bytes,omitempty"`
	PayloadType  string `json:"payload_type,omitempty"`
	Picture      string `json:"picture,omitempty"` // path at which it is served
	Text         string `json:"text,omitempty"`    // of the payload
	Shortened    bool   `json:"shortened,omitempty"`
}

func (s *Server) itemForm(at place, it *db.Item) *itemForm {
	out := &itemForm{Item: *it}
	out.Payload = nil
	if out.Modalities == nil {
		out.Modalities = slices.Concat(slices.Collect(maps.Keys(it.Vectors)),
			slices.Collect(maps.Keys(it.Sparse)))
		slices.Sort(out.Modalities)
	}
	out.Vectors, out.Sparse = nil, nil
	if len(it.Payload) > 0 {
		out.PayloadBytes, out.PayloadType = len(it.Payload), sniff(it.Payload)
		if out.PayloadType == plainText {
			out.Text = string(it.Payload)
		}
	}
	if v := s.pictureOf(it); v != nil {
		v.Set("collection", at.collection)
		v.Set("key", it.Key)
		if at.space != 0 {
			v.Set("space", strconv.Itoa(int(at.space)))
		}
		out.Picture = "/api/media?" + v.Encode()
	}
	return out
}

// MarshalJSON puts the names of both parts into one object.
func (f *itemForm) MarshalJSON() ([]byte, error) {
	item, err := json.Marshal(f.Item)
	if err != nil {
		return nil, err
	}
	shown, err := json.Marshal(f.shownOf)
	if err != nil || len(shown) == len("{}") {
		return item, err
	}
	return slices.Concat(item[:len(item)-1], []byte{','}, shown[1:]), nil
}

// shownText is the length of texts in a list of items.
const shownText = 1000

// shortened cuts long texts, for lists of items.
func (f *itemForm) shortened() *itemForm {
	f.Text = f.cut(f.Text)
	var fields map[string]any
	for name, v := range f.Fields {
		if s, ok := v.(string); ok && len(s) > shownText {
			if fields == nil {
				fields = make(map[string]any, len(f.Fields))
				for name, v := range f.Fields {
					fields[name] = v
				}
			}
			fields[name] = f.cut(s)
		}
	}
	if fields != nil {
		f.Fields = fields
	}
	return f
}

func (f *itemForm) cut(s string) string {
	if len(s) <= shownText {
		return s
	}
	f.Shortened = true
	n := shownText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// get returns the item at a place with a key, which are among the parameters of p. All others
// have been read.
func (s *Server) get(ctx context.Context, p *parameters, at place, key string) (*db.Item, error) {
	if err := p.end(); err != nil {
		return nil, err
	}
	if key == "" {
		return nil, badRequest("key is missing: the key of an item")
	}
	c, err := s.at(at)
	if err != nil {
		return nil, err
	}
	return c.Get(ctx, key)
}

func (s *Server) item(ctx context.Context, v url.Values) (any, error) {
	p := &parameters{values: v}
	at, key, vectors := p.place(), p.text("key", ""), p.flag("vectors")
	it, err := s.get(ctx, p, at, key)
	if err != nil {
		return nil, err
	}
	out := s.itemForm(at, it)
	if vectors {
		out.Vectors, out.Sparse, out.Modalities = it.Vectors, it.Sparse, it.Modalities
	}
	return out, nil
}

// items returns the first items of a collection, or the first ones that match; or with a seed, sample,
// random ones; and how many there are to choose from.
func (s *Server) items(ctx context.Context, v url.Values) (out any, err error) {
	p := &parameters{values: v}
	at, where, limit, seed := p.place(), p.text("where", ""), p.number("limit", 24, 1, maxK),
		p.number("sample", -1, 0, math.MaxInt32)
	if err := p.end(); err != nil {
		return nil, err
	}
	snapshot, err := s.db.Snapshot()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, snapshot.Close()) }()
	c, err := s.in(snapshot, at)
	if err != nil {
		return nil, err
	}
	chosen := c.Items(ctx, where)
	if seed >= 0 {
		chosen = c.Sample(ctx, limit, uint64(seed), where)
	}
	list := listForm{Items: []*itemForm{}}
	if list.Total, err = c.Count(ctx, where); err != nil {
		return nil, err
	}
	for it, err := range chosen {
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, s.itemForm(at, it).shortened())
		if len(list.Items) == limit {
			break
		}
	}
	return list, nil
}

// listForm is a list of some of the items that match.
type listForm struct {
	Items []*itemForm `json:"items"`
	Total int         `json:"total"`
}

func (s *Server) labels(_ context.Context, v url.Values) (any, error) {
	p := &parameters{values: v}
	at, limit := p.place(), p.number("limit", maxK, 1, 10*maxK)
	if err := p.end(); err != nil {
		return nil, err
	}
	c, err := s.at(at)
	if err != nil {
		return nil, err
	}
	labels, err := c.Labels()
	if err != nil {
		return nil, err
	}
	out := struct {
		Labels []string `json:"labels"`
		Total  int      `json:"total"`
	}{labels[:min(limit, len(labels))], len(labels)}
	if len(labels) == 0 {
		out.Labels = []string{}
	}
	return out, nil
}
