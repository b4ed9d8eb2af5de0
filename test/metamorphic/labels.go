package metamorphic

import (
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
)

// Renaming and merging labels. Keys of the operation are the label and what becomes of it.

// has reports whether any item has the label.
func (c *collection) has(label string) bool { return slices.Contains(c.used(), label) }

// relabelled returns a copy of labels with to in place of from, which is among them.
func relabelled(labels []string, from, to string) []string {
	out := slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return l == from })
	if !slices.Contains(out, to) {
		out = append(out, to)
	}
	return out
}

// relabel gives the items that have one label the other, and returns their keys.
func (c *collection) relabel(from, to string) (keys []string) {
	for _, key := range c.order {
		it := c.items[key]
		if !slices.Contains(it.labels, from) {
			continue
		}
		changed := *it // items do not change
		changed.labels = relabelled(it.labels, from, to)
		c.items[key] = &changed
		keys = append(keys, key)
	}
	return keys
}

// renameLabel renames a label. If earlier items had one of the new name, nothing knows that any more.
func (h *history) renameLabel(op *Op) error {
	if len(op.Keys) < 2 { // shrunk
		return errPassed
	}
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	old, name := op.Keys[0], op.Keys[1]
	var want error
	switch {
	case old == name:
		want = db.ErrInvalid
	case !c.has(old):
		want = db.ErrNotFound
	case c.has(name):
		want = db.ErrExists
	}
	if err := expect(handle.RenameLabel(h.ctx, old, name), want); err != nil {
		return err
	}
	next := h.now.fork()
	c = next.edit(op.In)
	c.labels = slices.DeleteFunc(c.labels, func(l string) bool { return l == name })
	c.labels[slices.Index(c.labels, old)] = name
	c.relabel(old, name)
	for _, sp := range c.spaces {
		if c.codesOnly() {
			break // no model knows labels
		}
		sp.known[name] = sp.known[old]
		delete(sp.known, old)
		codes := map[string]string{}
		for set, code := range sp.labelCodes {
			known := strings.Split(set, "\n")
			if slices.Contains(known, name) {
				continue
			}
			if i := slices.Index(known, old); i >= 0 {
				known[i] = name
			}
			slices.Sort(known)
			codes[strings.Join(known, "\n")] = code
		}
		sp.labelCodes = codes
	}
	return h.commit(next, true)
}
