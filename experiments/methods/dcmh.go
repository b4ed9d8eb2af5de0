package methods

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// fitDCMH is DCMH: Jiang and Li, "Deep cross-modal hashing", CVPR 2017. Two networks F and G are to tell by their
// inner products which items share a label:
//
//	-sum_ij (s_ij theta_ij - log(1 + exp(theta_ij))) + gamma (|B - F|^2 + |B - G|^2) + eta (|F'1|^2 + |G'1|^2)
//	theta = F G' / 2,  B = sgn(F + G)
//
// The authors' networks take pixels and words. Here both are perceptrons with a hidden layer of 512 rectified
// units over the given features, with columns of one variance. gamma 1; batches of 128, 20 epochs of gradient descent with momentum .9
// and a falling step. F'1 is estimated from the batch, and eta is .05, as larger ones let training diverge. S, of
// all pairs, is held as in the authors' program.
func fitDCMH(s *run) *Model {
	const epochs, gamma, eta = 20, 1, .05
	s.mapped(standard)
	share, nets, out := mul(s.Y, s.Y.T()), make([]*perceptron, 2), make([]*mat.Dense, 2)
	for t, x := range s.phi {
		nets[t] = newPerceptron(s.r, x, 512, s.q)
		_, out[t] = nets[t].forward(x)
	}
	b := signs(sum(out))
	for s.sweep(epochs) {
		rate := 20 * (1 - float64(s.done-1)/float64(max(epochs, s.Sweeps)))
		for t, x := range s.phi {
			order := s.r.Perm(s.n)
			for from := 0; from < s.n; from += 128 {
				batch := order[from:min(from+128, s.n)]
				xs := rowsOf(x, batch)
				hidden, f := nets[t].forward(xs)
				means, theta := columnMeans(f), mul(f, out[1-t].T())
				for a, i := range batch {
					out[t].SetRow(i, f.RawRowView(a))
					row := theta.RawRowView(a)
					for j, similar := range share.RawRowView(i) {
						row[j] = 1/(1+math.Exp(-row[j]/2)) - min(similar, 1)
					}
				}
				gradient := add(scaled(.5, mul(theta, out[1-t])), 2*gamma, minus(f, rowsOf(b, batch)))
				gradient.Apply(func(_, k int, v float64) float64 {
					return (v + 2*eta*float64(s.n)*means[k]) / float64(len(batch)*s.n)
				}, gradient)
				nets[t].step(xs, hidden, gradient, rate)
			}
			_, out[t] = nets[t].forward(x)
		}
		b = signs(sum(out))
	}
	m := &Model{Codes: []*mat.Dense{b, b}}
	for t := range nets {
		m.Project = append(m.Project, func(x *mat.Dense) *mat.Dense {
			_, z := nets[t].forward(s.maps[t](x))
			return z
		})
	}
	return m
}

// A perceptron has one hidden layer. Its inputs get a column of ones, as do the hidden units.
type perceptron struct {
	layers, speed [2]*mat.Dense // weights, and their momentum
	length        float64       // mean squared length of the hidden units at the start
}

func newPerceptron(r *rand.Rand, x *mat.Dense, hidden, q int) *perceptron {
	n, d := x.Dims()
	p := &perceptron{layers: [2]*mat.Dense{scaled(math.Sqrt2, normal(r, d+1, hidden)),
		scaled(.01, normal(r, hidden+1, q))}}
	p.speed = [2]*mat.Dense{scaled(0, p.layers[0]), scaled(0, p.layers[1])}
	units, _ := p.forward(x)
	p.length = square(units) / float64(n)
	return p
}

// forward returns the hidden units, with ones, and the outputs.
func (p *perceptron) forward(x *mat.Dense) (hidden, out *mat.Dense) {
	hidden = withOnes(apply(mul(withOnes(x), p.layers[0]), func(v float64) float64 { return max(v, 0) }))
	return hidden, mul(hidden, p.layers[1])
}

// step goes against the gradient at the outputs.
func (p *perceptron) step(x, hidden, gradient *mat.Dense, rate float64) {
	below := mul(gradient, p.layers[1].T())
	below.Apply(func(i, j int, v float64) float64 {
		if hidden.At(i, j) <= 0 {
			return 0
		}
		return v
	}, below)
	n, units := hidden.Dims()
	for l, g := range []*mat.Dense{mul(withOnes(x).T(), below.Slice(0, n, 0, units-1)), mul(hidden.T(), gradient)} {
		p.speed[l] = add(scaled(.9, p.speed[l]), 1, g)
		add(p.layers[l], -rate/p.length, p.speed[l])
	}
}
