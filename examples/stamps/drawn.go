package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
)

var drawings = []struct {
	group          string
	english, greek []string
	has            func(x, y float64) bool // x and y from -1 to 1
}{
	{"houses", []string{"house", "hut", "home"}, []string{"σπίτι", "καλύβα", "σπιτάκι"},
		func(x, y float64) bool { return y > 0 && math.Abs(x) < .6 || y <= 0 && math.Abs(x) < y+.8 }},
	{"trees", []string{"tree", "fir", "fir tree"}, []string{"δέντρο", "έλατο", "δεντράκι"},
		func(x, y float64) bool { return math.Abs(x) < .15 || y < .4 && math.Abs(x) < .4*(y+.9) }},
	{"fish", []string{"fish", "carp", "small fish"}, []string{"ψάρι", "κυπρίνος", "ψαράκι"},
		func(x, y float64) bool { return 2*x*x+6*y*y < .8 || x > .4 && math.Abs(y) < x-.4 }},
	{"flowers", []string{"flower", "rose", "tulip"}, []string{"λουλούδι", "τριαντάφυλλο", "τουλίπα"},
		func(x, y float64) bool {
			return math.Hypot(x, y) < .2+.6*math.Abs(math.Cos(2.5*math.Atan2(y, x)))
		}},
}

// drawStamps draws stamps of several places, sizes and colours. The same are drawn every time.
func drawStamps() (stamps []stamp, err error) {
	random := rand.New(rand.NewPCG(2, 2))
	for i := range 300 {
		kind, name := drawings[i%len(drawings)], random.IntN(3)
		s := stamp{key: fmt.Sprintf("%s/%03d", kind.group, i), group: kind.group,
			names: map[string]string{english: kind.english[name], greek: kind.greek[name]}}
		ink := color.NRGBA{uint8(random.IntN(90)), uint8(random.IntN(90)), uint8(random.IntN(90)), 255}
		const side = 96
		m := image.NewNRGBA(image.Rect(0, 0, side, side)) // transparent around what it shows
		size, left, top := .55+.4*random.Float64(), .25*random.NormFloat64(), .25*random.NormFloat64()
		for y := range side {
			for x := range side {
				u, v := (2*float64(x)/side-1-left)/size, (2*float64(y)/side-1-top)/size
				if math.Max(math.Abs(u), math.Abs(v)) < .9 && kind.has(u, v) {
					m.SetNRGBA(x, y, ink)
				} else if random.IntN(20) == 0 {
					m.SetNRGBA(x, y, color.NRGBA{uint8(random.IntN(256)), 90, 90, 255}) // dirt
				}
			}
		}
		var file bytes.Buffer
		if err := png.Encode(&file, m); err != nil {
			return nil, err
		}
		s.png, s.look = file.Bytes(), look(m)
		stamps = append(stamps, s)
	}
	return stamps, nil
}
