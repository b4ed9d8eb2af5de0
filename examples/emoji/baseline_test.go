package main

import (
	"cmp"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// A ridge regression from features to labels is the simplest model of both modalities.
// Its figures on held-out emoji show the value of the features. Learned codes should
// come near them; and a change of features that loses here also loses there.
func TestRidgeBaseline(t *testing.T) {
	if testing.Short() {
		t.Skip("solves two systems of up to 2,048 unknowns")
	}
	d := dataForTest(t)
	train, held := d.split()
	chance := d.chance(held, train)

	pictures, err := allPictureFeatures(t.Context(), d.pictures)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]int, len(d.items))
	for i := range all {
		all[i] = i
	}
	words := learnVocabulary(d.texts(train)).embedAll(d.texts(all))
	labels := labelMatrix(d)

	taught := selectRows(labels, train)
	for _, test := range []struct {
		direction string
		features  [][]float32
		gamma     float64
		atLeast   float64
	}{
		{"picture->words", pictures, 0.1, 0.72},
		{"words->picture", words, 0.1, 0.66},
	} {
		x := featureMatrix(test.features)
		w := ridge(t, selectRows(x, train), taught, test.gamma)
		var predicted, scores mat.Dense
		predicted.Mul(selectRows(x, held), w)
		// As in fddhdb, the database side has labels: an item stands at the place of
		// its label set. So items are compared by the angle to that place.
		scores.Mul(&predicted, unitRows(taught).T())
		got := meanAveragePrecision(d, held, train, &scores)
		t.Logf("%s: mAP %.3f by ridge, %.3f by chance", test.direction, got, chance)
		if got < test.atLeast {
			t.Errorf("%s: mAP %.3f, was at least %.2f", test.direction, got, test.atLeast)
		}
	}
}

// ridge solves (X'X + gamma I) W = X'Y.
func ridge(t *testing.T, x, y *mat.Dense, gamma float64) *mat.Dense {
	t.Helper()
	var gram mat.SymDense
	gram.SymOuterK(1, x.T())
	for i := range gram.SymmetricDim() {
		gram.SetSym(i, i, gram.At(i, i)+gamma)
	}
	var chol mat.Cholesky
	if !chol.Factorize(&gram) {
		t.Fatal("the Gram matrix is not positive definite")
	}
	var xy, w mat.Dense
	xy.Mul(x.T(), y)
	if err := chol.SolveTo(&w, &xy); err != nil {
		t.Fatal(err)
	}
	return &w
}

// meanAveragePrecision ranks the database by scores, which has a row for each query,
// and returns the mean over the queries. Ties keep the order of the database.
func meanAveragePrecision(d *dataset, queries, database []int, scores *mat.Dense) float64 {
	var sum float64
	order := make([]int, len(database))
	for q, query := range queries {
		for i := range order {
			order[i] = i
		}
		row := scores.RawRowView(q)
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(row[b], row[a]) })
		var found, precisions float64
		for rank, i := range order {
			if d.relevant(query, database[i]) {
				found++
				precisions += found / float64(rank+1)
			}
		}
		if found > 0 {
			sum += precisions / found
		}
	}
	return sum / float64(len(queries))
}

func labelMatrix(d *dataset) *mat.Dense {
	column := make(map[string]int)
	for i, name := range labelNames(d.labels) {
		column[name] = i
	}
	y := mat.NewDense(len(d.items), len(column), nil)
	for i, set := range d.labels {
		for _, l := range set {
			y.Set(i, column[l], 1)
		}
	}
	return y
}

func featureMatrix(features [][]float32) *mat.Dense {
	x := mat.NewDense(len(features), len(features[0]), nil)
	for i, f := range features {
		for j, v := range f {
			x.Set(i, j, float64(v))
		}
	}
	return x
}

func selectRows(m *mat.Dense, rows []int) *mat.Dense {
	_, columns := m.Dims()
	selected := mat.NewDense(len(rows), columns, nil)
	for i, row := range rows {
		selected.SetRow(i, m.RawRowView(row))
	}
	return selected
}

func unitRows(m *mat.Dense) *mat.Dense {
	u := mat.DenseCopyOf(m)
	n, _ := u.Dims()
	for i := range n {
		scaleToUnit(u.RawRowView(i))
	}
	return u
}
