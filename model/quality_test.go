package model

import (
	"testing"
)

// TestQualityOfTheReference trains with the authors' settings from five seeds and
// compares the mean figures with those of a reference implementation in numpy.
func TestQualityOfTheReference(t *testing.T) {
	for _, c := range []struct {
		set      string
		bits     int
		i2t, t2i float64
		long     bool
	}{
		{"wiki", 64, .365, .753, false},
		{"wiki", 32, .358, .748, true},
		{"wiki", 128, .371, .754, true},
		{"ucidigits", 64, .867, .981, true},
	} {
		if c.long && (testing.Short() || raceEnabled) {
			continue
		}
		data := readDataset(t, c.set)
		seeds := 5
		if testing.Short() || raceEnabled {
			seeds = 2
		}
		var i2t, t2i float64
		for seed := range seeds {
			result, err := Train(t.Context(), data.modalities, data.train, Options{
				Bits: c.bits, Seed: uint64(seed),
				Gamma: map[string]float64{"image": 1e-4, "text": 1e-4},
			})
			if err != nil {
				t.Fatal(err)
			}
			db := data.labelCodes(result.Model)
			a, _ := data.evaluate(t, result.Model, db, 0)
			b, _ := data.evaluate(t, result.Model, db, 1)
			i2t += a.MAP / float64(seeds)
			t2i += b.MAP / float64(seeds)
			if seed == 0 {
				t.Logf("%s: %+v", c.set, result.Report)
			}
		}
		t.Logf("%s, %d bits: %.3f / %.3f, reference %.3f / %.3f", c.set, c.bits, i2t, t2i, c.i2t, c.t2i)
		if !approx(i2t, c.i2t, .02) || !approx(t2i, c.t2i, .02) {
			t.Errorf("%s, %d bits: %.3f / %.3f is not within .02 of %.3f / %.3f", c.set, c.bits, i2t, t2i, c.i2t, c.t2i)
		}
	}
}
