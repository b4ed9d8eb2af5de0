package backup

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// linked is a repository in a folder with two backups, which share a file.
func linked(t *testing.T) (root string, s Store, made []string) {
	t.Helper()
	root = filepath.Join(t.TempDir(), "backups")
	s, err := Folder(root)
	if err != nil {
		t.Fatal(err)
	}
	for i := range byte(2) {
		made = append(made, mustCreateAtOnce(t, s, Manifest{},
			map[string][]byte{"a": []byte("the same"), "b": {i}}).ID)
	}
	return root, s, made
}

// moveAway moves what is at a path to another folder, and leaves a link.
func moveAway(t *testing.T, path string) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(path, to); err != nil {
		t.Fatal(err)
	}
	link(t, to, path)
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Skip(err)
	}
}

// contents returns the names of all files in a folder, also behind links.
func contents(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	var walk func(path string)
	walk = func(path string) {
		entries, err := os.ReadDir(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			full := filepath.Join(path, e.Name())
			if info, err := os.Stat(full); err == nil && info.IsDir() {
				walk(full)
			} else {
				all = append(all, strings.TrimPrefix(full, root))
			}
		}
	}
	walk(root)
	return all
}

// Parts of a repository behind links make no difference: backups are listed, verified,
// fetched and pruned, and further ones are made.
func TestRepositoryBehindLinks(t *testing.T) {
	for what, move := range map[string]func(t *testing.T, root string, made []string){
		"all": func(t *testing.T, root string, _ []string) { moveAway(t, root) },
		"manifests": func(t *testing.T, root string,
			_ []string) {
			moveAway(t, filepath.Join(root, "backups"))
		},
		"a manifest": func(t *testing.T, root string, made []string) {
			moveAway(t, filepath.Join(root, "backups", made[1]+".json"))
		},
		"objects": func(t *testing.T, root string,
			_ []string) {
			moveAway(t, filepath.Join(root, "objects"))
		},
		"each object": func(t *testing.T, root string, _ []string) {
			for _, name := range contents(t, filepath.Join(root, "objects")) {
				moveAway(t, filepath.Join(root, "objects", name))
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			root, s, made := linked(t)
			move(t, root, made)
			ctx := t.Context()
			sound := func(want ...string) {
				t.Helper()
				all, err := List(ctx, s)
				if err != nil {
					t.Fatal(err)
				}
				var ids []string
				for _, m := range all {
					ids = append(ids, m.ID)
				}
				if !slices.Equal(ids, want) {
					t.Fatalf("%v are listed, not %v", ids, want)
				}
				v, err := Verify(ctx, s, VerifyOptions{},
					func(f Finding) error { return errors.New(f.String()) })
				if err != nil || v.Backups != len(want) || v.Objects == 0 {
					t.Fatalf("verify: %+v, %v", v, err)
				}
				for _, id := range want {
					m, err := Find(ctx, s, Choice{ID: id})
					if err != nil {
						t.Fatal(err)
					}
					if err := Fetch(ctx, s, m, func(string) (Target, error) { return discarded{}, nil },
						FetchOptions{}); err != nil {
						t.Fatal(err)
					}
				}
			}
			sound(made...)
			if p, err := Prune(ctx, s, PruneOptions{Keep: 2}); err != nil || p.Objects > 0 {
				t.Fatalf("a prune that keeps both deletes %+v, %v", p, err)
			}
			sound(made...)
			made = append(made, mustCreateAtOnce(t, s, Manifest{},
				map[string][]byte{"a": []byte("the same"), "c": {7}}).ID)
			sound(made...)
			if p, err := Prune(ctx, s, PruneOptions{Keep: 1}); err != nil || len(p.Deleted) != 2 ||
				p.Objects != 2 {
				t.Fatalf("a prune deletes %+v, %v", p, err)
			}
			sound(made[2])
		})
	}
}

type discarded struct{}

func (discarded) Write(p []byte) (int, error) { return len(p), nil }
func (discarded) Sync() error                 { return nil }
func (discarded) Close() error                { return nil }

// If a link leads nowhere, or in a circle, or to anything but a file, nothing counts as
// missing: every function returns an error, and nothing is deleted.
func TestBrokenLinksInARepository(t *testing.T) {
	for what, to := range map[string]string{
		"a disk that is not mounted": "/nowhere/at/all",
		"a circle":                   "", // the link itself
		"a device":                   os.DevNull,
	} {
		for _, where := range []string{"backups", "backups/ID.json", "objects", "objects/OBJECT", "running"} {
			t.Run(what+" for "+where, func(t *testing.T) {
				root, s, made := linked(t)
				object := contents(t, filepath.Join(root, "objects"))[0]
				path := filepath.Join(root, strings.NewReplacer("ID", made[0], "/OBJECT", object).Replace(
					where))
				away := filepath.Join(t.TempDir(), "away")
				if err := os.Rename(path, away); err != nil {
					t.Fatal(err)
				}
				link(t, cmp.Or(to, path), path)
				before := contents(t, root)
				ctx := t.Context()
				name := strings.TrimPrefix(filepath.ToSlash(path), filepath.ToSlash(root)+"/")
				if _, err := s.Get(ctx, name); err == nil || errors.Is(err, fs.ErrNotExist) {
					t.Errorf("get: %v", err)
				}
				if err := s.List(ctx, "", func(Object) error { return nil }); !errors.Is(err, ErrDamaged) {
					t.Errorf("list: %v", err)
				}
				if err := s.Put(ctx, name, strings.NewReader(""), 0); !errors.Is(err, ErrDamaged) {
					t.Errorf("put: %v", err)
				}
				if err := s.Delete(ctx, name); !errors.Is(err, ErrDamaged) {
					t.Errorf("delete: %v", err)
				}
				for _, opt := range []PruneOptions{{}, {Keep: 1}, {Keep: 1, DryRun: true}} {
					if _, err := Prune(ctx, s, opt); !errors.Is(err, ErrDamaged) ||
						!strings.Contains(err.Error(), filepath.Base(path)) {
						t.Errorf("prune %+v: %v", opt, err)
					}
				}
				if _, err := Verify(ctx, s, VerifyOptions{},
					func(f Finding) error { return damaged("%s", f) }); !errors.Is(err, ErrDamaged) {
					t.Errorf("verify: %v", err)
				}
				if after := contents(t, root); !slices.Equal(after, before) {
					t.Errorf("there is %q, there was %q", after, before)
				}
				if err := errors.Join(os.Remove(path), os.Rename(away, path)); err != nil {
					t.Fatal(err)
				}
				if p, err := Prune(ctx, s, PruneOptions{Keep: 2}); err != nil || p.Objects > 0 ||
					len(p.Kept) != 2 {
					t.Errorf("when it is back: %+v, %v", p, err)
				}
			})
		}
	}
}

// A link to a folder above is not followed for ever.
func TestCircleInARepository(t *testing.T) {
	root, s, _ := linked(t)
	link(t, root, filepath.Join(root, "objects", "again"))
	if err := s.List(t.Context(), "", func(Object) error { return nil }); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// Files that killed processes were putting are removed after a day, and no others.
func TestLeftoversOfPuts(t *testing.T) {
	root, _, _ := linked(t)
	old := filepath.Join(root, "objects", incoming, incomingPrefix+"1")
	other := filepath.Join(root, "objects", incoming, "thesis.tex")
	for _, path := range []string{old, other} {
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Unix(1e9, 0), time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Folder(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "x", strings.NewReader(""), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

// A folder in the place of a file, and a file in the place of a folder, do not count as
// missing: every function returns an error, and nothing is deleted.
func TestFoldersInPlaceOfFiles(t *testing.T) {
	for _, where := range []string{"backups", "backups/ID.json", "objects", "objects/OBJECT", "running"} {
		t.Run(where, func(t *testing.T) {
			root, s, made := linked(t)
			object := contents(t, filepath.Join(root, "objects"))[0]
			path := filepath.Join(root, strings.NewReplacer("ID", made[0], "/OBJECT", object).Replace(where))
			away := filepath.Join(t.TempDir(), "away")
			info, err := os.Stat(path)
			if err == nil {
				err = os.Rename(path, away)
			}
			if err == nil && info.IsDir() {
				err = os.WriteFile(path, nil, 0o666)
			} else if err == nil {
				err = os.Mkdir(path, 0o777)
			}
			if err != nil {
				t.Fatal(err)
			}
			before := contents(t, root)
			ctx := t.Context()
			if _, err := Prune(ctx, s, PruneOptions{Keep: 1}); !errors.Is(err, ErrDamaged) ||
				!strings.Contains(err.Error(), filepath.Base(path)) {
				t.Errorf("prune: %v", err)
			}
			if _, err := Verify(ctx, s, VerifyOptions{},
				func(f Finding) error { return damaged("%s", f) }); !errors.Is(err, ErrDamaged) {
				t.Errorf("verify: %v", err)
			}
			if strings.HasPrefix(where, "backups") {
				if all, err := List(ctx, s); !errors.Is(err, ErrDamaged) {
					t.Errorf("%d backups, %v", len(all), err)
				}
			}
			if after := contents(t, root); !slices.Equal(after, before) {
				t.Errorf("there is %q, there was %q", after, before)
			}
		})
	}
}
