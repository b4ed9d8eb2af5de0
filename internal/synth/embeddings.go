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

// Embeddings makes vectors that look like those of a neural encoder, with items of n rows of d
// numbers: 2,000 topics of very different sizes; a spectrum that decays, variances falling as
// 1/(1 + j/8) over directions j; items of a topic that differ in directions of the topic's own, and
// less in all others; a common offset; and unit length. Items from first to first+n-1 are made, and
// each has a random stream of its own, so that queries can be made beside any number of items.
func Embeddings(first, n, d int, seed uint64) [][]float32 {
	s := stream(seed)
	// The variance of direction j.
	spectrum := make([]float64, d)
	sum := 0.0
	for j := range spectrum {
		spectrum[j] = 1 / (1 + float64(j)/8)
		sum += spectrum[j]
	}
	for j := range spectrum {
		spectrum[j] = math.Sqrt(spectrum[j] / sum)
	}
	shaped := func(purpose, i uint64) []float64 {
		own, x := s.split(purpose, i), make([]float64, d)
		for j := range x {
			x[j] = own.normal() * spectrum[j]
		}
		return x
	}
	offset := shaped(purposeOffset, 0)
	centres, axes := make([][]float64, embeddingTopics), make([][][]float64, embeddingTopics)
	weights, total := make([]float64, embeddingTopics), 0.0
	for t := range embeddingTopics {
		total += 1 / float64(t+1)
		weights[t] = total
	}
	rows := make([][]float32, n)
	for i := range rows {
		own := s.split(purposeEmbedding, uint64(first+i))
		at := own.uniform() * total
		t := 0
		for weights[t] < at && t < embeddingTopics-1 {
			t++
		}
		if centres[t] == nil {
			centres[t] = shaped(purposeTopic, uint64(t))
			for a := range topicAxes {
				axes[t] = append(axes[t], shaped(purposeAxis, uint64(t*topicAxes+a)))
			}
		}
		x := make([]float64, d)
		for j := range x {
			x[j] = centres[t][j] + commonOffset*offset[j] + .2*topicSpread*own.normal()*spectrum[j]
		}
		for _, axis := range axes[t] {
			w := topicSpread / math.Sqrt(topicAxes) * own.normal()
			for j, v := range axis {
				x[j] += w * v
			}
		}
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
