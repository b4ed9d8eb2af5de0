package quant

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/internal/simd"
)

// Kernels give the sums of the definition, for any length of vectors, and any number of them.
func TestKernelsAgree(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, dims := range []int{8, 16, 24, 32, 40, 56, 64, 72, 128, 384, 1024, 4096} {
		for _, n := range []int{1, 2, 15, 16, 17, 40} {
			// Vectors stand in an array with nothing behind the last one, at odd places.
			data := make([]int8, 3+n*dims)
			for i := range data {
				data[i] = int8(rnd.IntN(256))
			}
			z := make([]float64, dims)
			for i := range z {
				z[i] = rnd.NormFloat64()
				if n == 2 {
					z[i] = 1 // the largest sums that there are
				}
			}
			if n == 2 {
				for i := range data {
					data[i] = -128
				}
			}
			q := NewQuery(z)
			vectors := make([]*int8, n)
			want := make([]dot, n)
			for i := range vectors {
				v := data[3+i*dims:][:dims]
				vectors[i] = &v[0]
				var product, square int64
				for j, x := range v {
					product += int64(q.v[j]) * int64(x)
					square += int64(x) * int64(x)
				}
				if want[i] = (dot{int32(product), int32(square)}); int64(want[i].product) != product ||
					int64(want[i].square) != square {
					t.Fatalf("%d dimensions: product %d, square %d do not fit", dims, product, square)
				}
			}
			for _, k := range sets {
				for _, m := range []int{n, max(1, n/2), 1} { // the others are only fetched
					got := make([]dot, n)
					dotsBy(k, got[:m], q.v, vectors, 1+n*dims%500)
					if !slices.Equal(got[:m], want[:m]) ||
						slices.ContainsFunc(got[m:], func(d dot) bool { return d != dot{} }) {
						t.Errorf("%v, %d of %d vectors of %d dimensions: %v, want %v", k, m, n, dims, got,
							want[:m])
					}
				}
			}
		}
	}
}

// A query has the direction of its vector, whatever its length, and none if that has none.
func TestNewQuery(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		z := rapid.SliceOfN(rapid.Float64Range(-1, 1), 1, 300).Draw(t, "z")
		scale := math.Pow(10, float64(rapid.IntRange(-300, 300).Draw(t, "scale")))
		zz, largest := 0.0, 0.0
		for _, x := range z {
			zz, largest = zz+x*x, max(largest, math.Abs(x))
		}
		if largest < 1e-6 {
			return
		}
		scaled := slices.Clone(z)
		for i := range scaled {
			scaled[i] *= scale
		}
		q := NewQuery(scaled)
		for i, x := range z {
			want := x / math.Sqrt(zz)
			if got := float64(q.v[i]) * float64(q.inverse); math.Abs(got-want) > 3e-5 {
				t.Fatalf("dimension %d: %g, want %g", i, got, want)
			}
		}
	})
	for _, z := range [][]float64{{0, 0}, {math.Inf(1), 1}, {math.NaN(), 1},
		{math.MaxFloat64, math.MaxFloat64}} {
		if q := NewQuery(z); q != nil {
			t.Errorf("%g has a direction", z)
		}
	}
}

// Similarities are cosines, the same one by one and in a table, and Each leaves out none above
// the floor.
func TestSimilaritiesAreCosines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dims := rapid.IntRange(1, 70).Draw(t, "dims")
		n := rapid.IntRange(1, 600).Draw(t, "rows")
		rnd := rand.New(rand.NewPCG(uint64(rapid.IntRange(0, 1<<30).Draw(t, "seed")), 0))
		z := make([]float64, dims)
		for i := range z {
			z[i] = rnd.NormFloat64()
		}
		w := NewWriter(dims)
		w.Open()
		var rows []uint32
		want := map[uint32]float32{}
		q := NewQuery(z)
		for row := range uint32(n) {
			if rnd.IntN(3) > 0 {
				rows = append(rows, row)
			}
			if rnd.IntN(4) == 0 {
				want[row] = 0
				continue
			}
			v, dot, vv, zz := make([]byte, dims), 0.0, 0.0, 0.0
			for i := range v {
				x := int8(rnd.IntN(255) - 127)
				v[i] = byte(x)
				dot, vv, zz = dot+float64(x)*z[i], vv+float64(x)*float64(x), zz+z[i]*z[i]
			}
			w.Put(row, v)
			want[row] = q.Similarity(v)
			if vv > 0 {
				if cosine := dot / math.Sqrt(vv*zz); math.Abs(cosine-float64(want[row])) > 1e-4 {
					t.Fatalf("similarity %g, cosine %g", want[row], cosine)
				}
			}
		}
		w.Cover(uint32(n))
		table := w.Publish()
		for _, floor := range []float32{-2, -.1, 0, .1, .3} {
			type hit struct {
				row uint32
				s   float32
			}
			var got, expected []hit
			table.Each(q, rows, floor, func(row uint32, s float32) float32 {
				got = append(got, hit{row, s})
				return floor
			})
			for _, row := range rows {
				if want[row] > floor {
					expected = append(expected, hit{row, want[row]})
				}
			}
			if !slices.Equal(got, expected) {
				t.Fatalf("above %g: %v, want %v", floor, got, expected)
			}
		}
		// A floor that rises as one that looks for the best three has it.
		var best []float32
		table.Each(q, rows, -2, func(_ uint32, s float32) float32 {
			best = append(best, s)
			slices.SortFunc(best, func(a, b float32) int { return int(math.Copysign(1, float64(b-a))) })
			if len(best) < 3 {
				return -2
			}
			best = best[:3]
			return best[2]
		})
		all := make([]float32, 0, len(rows))
		for _, row := range rows {
			all = append(all, want[row])
		}
		slices.Sort(all)
		slices.Reverse(all)
		if len(best) > len(all) || !slices.Equal(sortedDown(best), all[:len(best)]) {
			t.Fatalf("best %v of %v", best, all)
		}
	})
}

func sortedDown(s []float32) []float32 {
	s = slices.Clone(s)
	slices.Sort(s)
	slices.Reverse(s)
	return s
}

// Eight bits a dimension keep a cosine within half a percent of the true one.
func TestEightBitsKeepCosines(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, dims := range []int{8, 72, 128, 4096} {
		for range 50 {
			a, b := make([]float64, dims), make([]float64, dims)
			var ab, aa, bb, largest float64
			for j := range a {
				a[j] = rnd.NormFloat64() * 1e3
				b[j] = rnd.NormFloat64() + a[j]/1e3
				ab, aa, bb, largest = ab+a[j]*b[j], aa+a[j]*a[j], bb+b[j]*b[j], max(largest, math.Abs(a[j]))
			}
			v := make([]byte, dims)
			for j := range v {
				v[j] = byte(int8(math.RoundToEven(a[j] / largest * 127)))
			}
			if got, want := float64(NewQuery(b).Similarity(v)),
				ab/math.Sqrt(aa*bb); math.Abs(got-want) > .005 {
				t.Fatalf("%d dimensions: cosine %.4f, want %.4f", dims, got, want)
			}
		}
	}
}

// A model of the vectors of rows, to compare tables with.
type model map[uint32][]byte

// check compares a table with the model for all rows below the table's end.
func (m model) check(t *rapid.T, table *Table, rows uint32) {
	for row := range min(table.Covered(), rows) {
		v := table.Vector(row)
		want, has := m[row]
		if (v != nil) != has || has && !bytes.Equal(want, bytesOf(v)[:len(want)]) {
			t.Fatalf("row %d has %v, want %v", row, v, want)
		}
	}
	bytes := 0
	table.pages.All(func(p *page) { bytes += p.bytes() })
	if bytes != table.Bytes() {
		t.Fatalf("%d bytes, counted %d", bytes, table.Bytes())
	}
}

func bytesOf(v []int8) []byte {
	b := make([]byte, len(v))
	for i, x := range v {
		b[i] = byte(x)
	}
	return b
}

func (m model) clone() model {
	c := model{}
	for row, v := range m {
		c[row] = v
	}
	return c
}

// Published tables never change, whatever the writer does. Tables that are loaded while rows
// change have what the rows have.
func TestPublishedTablesNeverChange(t *testing.T) { rapid.Check(t, histories) }
func TestLoadingMeetsWrites(t *testing.T)         { rapid.Check(t, histories) }

func histories(t *rapid.T) {
	const rows = 200
	dims := rapid.SampledFrom([]int{3, 8, 20}).Draw(t, "dims")
	w := NewWriter(dims)
	now := model{}
	type state struct {
		table *Table
		model model
	}
	var published []state
	var loading model // the state that a part is made of, from a row on; nil: none
	from := uint32(0)
	next := uint32(0) // no row from it on has ever had a vector
	value := byte(0)
	vector := func() []byte {
		value++
		return bytes.Repeat([]byte{value}, dims)
	}
	t.Repeat(map[string]func(*rapid.T){
		"put": func(t *rapid.T) {
			row := rapid.Uint32Range(0, min(next+3, rows-1)).Draw(t, "row")
			v := vector()
			if rapid.IntRange(0, 3).Draw(t, "clear") == 0 {
				v = nil
				delete(now, row)
			} else {
				now[row] = v
			}
			complete := w.IsOpen() && w.Covered() >= next
			w.Put(row, v)
			if next = max(next, row+1); complete {
				w.Cover(next)
			}
		},
		"publish": func(t *rapid.T) {
			published = append(published, state{w.Publish(), now.clone()})
		},
		"open": func(t *rapid.T) {
			w.Open()
			loading, from = now.clone(), w.Covered()
		},
		"install": func(t *rapid.T) {
			if loading == nil {
				return
			}
			end := rapid.Uint32Range(from, rows).Draw(t, "end")
			p := NewPart(dims, from)
			for row := from / pageRows * pageRows; row < end; row++ {
				if v := loading[row]; v != nil {
					p.Append(row, v)
				}
			}
			w.Install(p, end)
			next = max(next, w.Covered())
		},
		"forget": func(t *rapid.T) { w.Forget(rapid.Uint32Range(0, rows).Draw(t, "from")) },
		"close":  func(t *rapid.T) { w.Close() },
		"": func(t *rapid.T) {
			now.check(t, &w.t, rows)
			for _, p := range published {
				p.model.check(t, p.table, rows)
			}
		},
	})
}

// A table of full pages takes what the vectors take, and a sixteenth of that.
func TestMemory(t *testing.T) {
	for _, dims := range []int{16, 32, 64, 128} {
		w := NewWriter(dims)
		w.Open()
		v := make([]byte, dims)
		const n = 10_000
		for row := range uint32(n) {
			w.Put(row, v)
		}
		w.Cover(n)
		loaded := NewWriter(dims)
		loaded.Open()
		p := NewPart(dims, 0)
		for row := range uint32(n) {
			p.Append(row, v)
		}
		loaded.Install(p, n)
		for _, got := range []int{w.Bytes(), loaded.Bytes()} {
			if most := n * dims * 17 / 16; got > most {
				t.Errorf("%d dimensions: %d bytes, at most %d", dims, got, most)
			}
		}
	}
}

func BenchmarkEach(b *testing.B) {
	const n, dims = 1_000_000, 64
	rnd := rand.New(rand.NewPCG(1, 2))
	w := NewWriter(dims)
	w.Open()
	v, z := make([]byte, dims), make([]float64, dims)
	for row := range uint32(n) {
		for i := range v {
			v[i] = byte(rnd.IntN(255) - 127)
		}
		w.Put(row, v)
	}
	w.Cover(n)
	for i := range z {
		z[i] = rnd.NormFloat64()
	}
	table, q := w.Publish(), NewQuery(z)
	var labels [20][]uint32 // rows, as a label has them
	for row := range uint32(n) {
		i := rnd.IntN(len(labels))
		labels[i] = append(labels[i], row)
	}
	for _, k := range sets {
		b.Run(k.String(), func(b *testing.B) {
			defer func(k simd.Set) { active = k }(active)
			active = k
			i := 0
			for b.Loop() {
				best := float32(-2)
				table.Each(q, labels[i%len(labels)], best,
					func(_ uint32, s float32) float32 { best = s; return s })
				i++
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/(n/float64(len(sets))), "ns/vector")
		})
	}
}

// Rows are scattered as those of a filter that one item in some passes.
func BenchmarkEachBound(b *testing.B) {
	const n, dims = 1_000_000, 384
	r := rand.New(rand.NewPCG(1, 2))
	w := NewWriter(VectorBytes(dims))
	w.Open()
	draw := func() []float32 {
		x := make([]float32, dims)
		for i := range x {
			x[i] = r.Float32() - .5
		}
		return x
	}
	vectors := make([][]byte, 1000)
	for i := range vectors {
		vectors[i] = AppendVector(nil, draw())
	}
	for row := range uint32(n) {
		w.Put(row, vectors[r.IntN(len(vectors))])
	}
	w.Cover(n)
	table, q := w.Publish(), NewVectorQuery(draw())
	for _, every := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("every=%d", every), func(b *testing.B) {
			var rows [][]uint32
			for range 20 {
				var set []uint32
				for row := range uint32(n) {
					if r.IntN(every) == 0 {
						set = append(set, row)
					}
				}
				rows = append(rows, set[:n/every/2])
			}
			i := 0
			for b.Loop() {
				for part := range slices.Chunk(rows[i%len(rows)], 1024) {
					table.EachBound(q, Cosine, part, .9, func(uint32, float32, float32) float32 { return .9 })
				}
				i++
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/(n/float64(every)/2), "ns/vector")
		})
	}
}

// The bounds of a cosine hold for vectors of all sizes, near each other and far, and what is left out
// is less than the floor. They come from every kernel.
func TestEachBound(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, dims := range []int{1, 2, 7, 64, 300} {
		draw := func(scale float64) []float32 {
			x := make([]float32, dims)
			for j := range x {
				x[j] = float32(r.NormFloat64() * scale)
			}
			return x
		}
		query := draw(1)
		var vectors [][]float32
		for i := range 400 {
			x := draw([]float64{1, 1e-3, 1e18, 1e-30, 1e-44}[i%5])
			switch i % 8 {
			case 1: // nearly the query, or its opposite
				for j := range x {
					x[j] = query[j] * float32(1+r.NormFloat64()*1e-4) * float32(1-2*(i/8%2))
				}
			case 3: // most of it in one dimension, so that the rest is rounded off
				x[0] = 1e6
			case 5:
				clear(x)
			}
			vectors = append(vectors, x)
		}
		w := NewWriter(VectorBytes(dims))
		w.Open()
		var rows []uint32
		for i, x := range vectors {
			w.Put(uint32(i), AppendVector(nil, x))
			rows = append(rows, uint32(i))
		}
		w.Cover(uint32(len(vectors)))
		table := w.Publish()
		exact := func(x []float32) float64 {
			var xy, xx, yy float64
			for j := range x {
				a, b := float64(x[j]), float64(query[j])
				xy, xx, yy = xy+a*b, xx+a*a, yy+b*b
			}
			if xx == 0 {
				return 0
			}
			return xy / math.Sqrt(xx) / math.Sqrt(yy)
		}
		for _, floor := range []float32{float32(math.Inf(-1)), -.5, 0, .3, .9, 1} {
			seen := map[uint32]bool{}
			tight := 0
			table.EachBound(NewVectorQuery(query), Cosine, rows, floor,
				func(row uint32, least, most float32) float32 {
					seen[row] = true
					if c := exact(vectors[row]); c < float64(least) || c > float64(most) || most < floor {
						t.Errorf("%d dimensions, row %d: a cosine of %g, bounds %g and %g, floor %g", dims,
							row,
							c, least, most, floor)
					}
					if most-least < .1 {
						tight++
					}
					return floor
				})
			for i, x := range vectors {
				if c := exact(x); !seen[uint32(i)] && c >= float64(floor) {
					t.Errorf("%d dimensions, row %d of %g is left out, floor %g", dims, i, c, floor)
				}
			}
			if floor < -1 && tight < len(vectors)/2 {
				t.Errorf("%d dimensions: %d of %d bounds are tight", dims, tight, len(vectors))
			}
		}
	}
}
