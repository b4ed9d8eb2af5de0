package methods

import (
	"gonum.org/v1/gonum/mat"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/experiments/sets"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// Settings of the authors of FDDH, and their map.
const fddhMu, fddhGamma = fit.DefaultMu, sets.PublishedGamma

var fddhMap = rbf(sets.PublishedAnchors, fit.DefaultWidth)

// fitPublished is FDDH with the settings of its authors (Liu, Wang and Cheung, IEEE TNNLS 2021), by package
// model/fit:
//
//	|H - C Y|^2 + sum_t mu |phi_t - R_t C Y|^2 + delta |Y|^2  s.t. C'C = I, R_t'R_t = I, H in {-1, 1}
//
// mu 1e-3, delta 1e4, 800 anchors, gamma 1e-4, 3 sweeps. With Options.Target its projections have the aim
// labels, which takes method labels: the limit of a large delta.
func fitPublished(s *run) {
	var names []string
	for t := range s.X {
		names = append(names, s.name(t))
	}
	opt := sets.Published(names, s.q, min(sets.PublishedAnchors, s.n))
	opt.Fusion = fit.Fusion{Rule: fit.FusionSum}
	if s.Target {
		prior := fit.DefaultPrior
		opt.Method, opt.Aim, opt.Prior = model.MethodLabels, model.AimLabels, &prior
	}
	s.fitFDDH(opt)
}

// fitDefaults is FDDH with the defaults of fddhdb train: settings are chosen from the training items, and
// projections learn the target.
func fitDefaults(s *run) { s.fitFDDH(fit.Options{}) }

func (s *run) fitFDDH(opt fit.Options) {
	opt.Bits, opt.Seed, opt.Sweeps = s.q, s.Seed, s.Sweeps
	var modalities []model.Modality
	for t, x := range s.X {
		modalities = append(modalities, model.Modality{Name: s.name(t), Dim: x.RawMatrix().Cols})
	}
	var items sets.Examples
	for i, set := range labelSets(s.Y) {
		ex := model.Example{Labels: set}
		for _, x := range s.X {
			ex.Vectors = append(ex.Vectors, model.Dense(singles(x.RawRowView(i))))
		}
		items = append(items, ex)
	}
	result, err := fit.Train(s.ctx, modalities, items, opt)
	if err != nil {
		s.err = err
		return
	}
	learned, code := result.Model, codec.NewCode(s.q)
	b := mat.NewDense(s.n, s.q, nil)
	for i, set := range labelSets(s.Y) {
		learned.LabelCode(code, set)
		for k := range s.q {
			if b.Set(i, k, -1); code.Bit(k) {
				b.Set(i, k, 1)
			}
		}
	}
	s.Objective, s.Fuse = result.Report.Objective, func(z []*mat.Dense) *mat.Dense {
		fused, rows := mat.DenseCopyOf(z[0]), make([][]float64, len(z))
		for i := range fused.RawMatrix().Rows {
			for t := range z {
				rows[t] = z[t].RawRowView(i)
			}
			learned.Fuse(fused.RawRowView(i), rows)
		}
		return fused
	}
	for t := range s.X {
		s.Codes, s.Project = append(s.Codes, b), append(s.Project, func(x *mat.Dense) *mat.Dense {
			z, encoder := mat.NewDense(x.RawMatrix().Rows, s.q, nil), learned.NewEncoder()
			for i := range x.RawMatrix().Rows {
				// The vector has the dimension of the training items, and is finite.
				_ = encoder.Project(z.RawRowView(i), t, singles(x.RawRowView(i)))
			}
			return z
		})
	}
}

func singles(x []float64) (s []float32) {
	for _, v := range x {
		s = append(s, float32(v))
	}
	return s
}

// labelSets returns the columns that are not 0, by row.
func labelSets(y *mat.Dense) [][]uint32 {
	sets := make([][]uint32, y.RawMatrix().Rows)
	for i := range sets {
		for k, v := range y.RawRowView(i) {
			if v != 0 {
				sets[i] = append(sets[i], uint32(k))
			}
		}
	}
	return sets
}
