package synth

import "math"

// Shape of Embeddings.
const (
	embeddingTopics = 2000 // by Zipf weights, 1/rank
	topicAxes       = 16   // directions in which items of a topic differ from each other
	topicSpread     = .65  // length of these differences, where centres of topics have 1
	commonOffset    = .6   // length of what all vectors share
)

// Purposes of the streams of Embeddings.
const (
	purposeTopic = iota + 100
	purposeAxis
	purposeEmbedding
	purposeOffset
	purposePaired
)

// Embeddings makes vectors of the set Topics, of d dimensions: items of n rows, from number first on.
// Each has a random stream of its own, so that queries can be made beside any number of items.
func Embeddings(first, n, d int, seed uint64) [][]float32 {
	p := newTopics(d, stream(seed))
	rows := make([][]float32, n)
	x := make([]float64, d)
	for i := range rows {
		p.vector(x, first+i)
		rows[i] = unit(x)
	}
	return rows
}

// unit returns x at length 1.
func unit(x []float64) []float32 {
	square := 0.0
	for _, v := range x {
		square += v * v
	}
	row := make([]float32, len(x))
	for j, v := range x {
		row[j] = float32(v / math.Sqrt(square))
	}
	return row
}

// PairedEmbeddings makes n items with a vector in each of two encoders' spaces, of d and e
// dimensions: Embeddings of 64 dimensions, seen through a random linear map for each space, with
// noise of a fifth of their length there.
func PairedEmbeddings(first, n, d, e int, seed uint64) (a, b [][]float32) {
	latent := Embeddings(first, n, 64, seed)
	s := stream(seed)
	seen := func(space uint64, dim int) [][]float32 {
		maps := s.split(purposePaired, space)
		m := make([]float64, dim*64)
		for i := range m {
			m[i] = maps.normal() / 8
		}
		rows := make([][]float32, n)
		for i, z := range latent {
			own := s.split(purposePaired+1+space, uint64(first+i))
			x := make([]float64, dim)
			for j := range x {
				x[j] = .2 / 8 * own.normal()
				for k, v := range z {
					x[j] += m[j*64+k] * float64(v)
				}
			}
			rows[i] = unit(x)
		}
		return rows
	}
	return seen(0, d), seen(1, e)
}
