package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// A thing is a place, a time of day or a subject: its label, and the words for it in
// captions.
type thing struct {
	label string
	words []string
}

var (
	places = []thing{
		{"beach", []string{"on the beach", "by the sea", "on the shore"}},
		{"forest", []string{"in the forest", "in the woods", "under trees"}},
		{"city", []string{"in the city", "in the street", "in town"}},
		{"mountain", []string{"in the mountains", "above the snow", "below the peaks"}},
	}
	times = []thing{
		{"day", []string{"at noon", "in the sun", "by day"}},
		{"sunset", []string{"at sunset", "at dusk", "in the evening"}},
		{"night", []string{"at night", "under stars", "in the dark"}},
	}
	subjects = []thing{
		{"", []string{"nobody", "a view", "silence"}},
		{"dog", []string{"a dog", "a puppy", "our dog"}},
		{"bicycle", []string{"a bicycle", "a bike", "my bike"}},
		{"child", []string{"a child", "a girl", "a boy"}},
	}
)

// A photo is a picture with its caption.
type photo struct {
	key, caption string
	labels       []string
	year         int
	image, text  []float32
}

// A camera takes photos one by one.
type camera struct {
	random *rand.Rand
	next   int
	tint   [3]float64 // factors for red, green and blue
}

var daylight, warm = [3]float64{1, 1, 1}, [3]float64{.95, .7, .45}

func newCamera() *camera {
	return &camera{random: rand.New(rand.NewPCG(2021, 1)), next: 1}
}

func (c *camera) take(n int) []photo {
	photos := make([]photo, n)
	for i := range photos {
		place, time, subject := c.random.IntN(len(places)), c.random.IntN(len(times)),
			c.random.IntN(len(subjects))
		p := photo{
			caption: c.describe(place, time, subject),
			labels:  []string{places[place].label, times[time].label},
			year:    2015 + c.random.IntN(10),
			image:   c.expose(place, time, subject),
		}
		if label := subjects[subject].label; label != "" {
			p.labels = append(p.labels, label)
		}
		p.key = fmt.Sprintf("%04d-%s.jpg", c.next, strings.Join(p.labels, "-"))
		p.text, _ = textVector(p.caption)
		photos[i] = p
		c.next++
	}
	return photos
}

// describe returns what a person might write under a photo. People do not always say
// everything.
func (c *camera) describe(place, time, subject int) string {
	phrase := func(t thing) string { return t.words[c.random.IntN(len(t.words))] }
	said := []string{phrase(subjects[subject])}
	if c.random.IntN(4) > 0 {
		said = append(said, phrase(places[place]))
	}
	if c.random.IntN(4) > 0 {
		said = append(said, phrase(times[time]))
	}
	return strings.Join(said, " ")
}

const (
	side   = 16 // width and height of a picture in pixels
	grid   = 4  // cells on a side of the grid whose means are the features
	pixels = side / grid
)

// expose draws a picture and returns the mean red, green and blue of each cell of the
// grid, from 0 to 1, row by row.
func (c *camera) expose(place, time, subject int) []float32 {
	horizon := side/2 - 1 + c.random.IntN(3)
	light := math.Exp(.35 * c.random.NormFloat64())
	sx, sy := 2+c.random.IntN(side-7), horizon+c.random.IntN(side-4-horizon)
	features := make([]float32, 3*grid*grid)
	for y := range side {
		for x := range side {
			colour := sky(time, float64(y)/float64(horizon))
			if y >= horizon || place == 3 && y > horizon-4+abs(x%8-4) || place == 2 && y > 3 && x/4%2 == 0 {
				colour = ground(place, time, x, y, horizon)
			}
			if subject > 0 && x >= sx && x < sx+5 && y >= sy && y < sy+4 {
				colour = [3][3]float64{{.45, .25, .1}, {.1, .1, .15}, {.85, .15, .3}}[subject-1]
			}
			for k := range 3 {
				v := colour[k]*light*c.tint[k] + .3*c.random.NormFloat64()
				cell := 3*(y/pixels*grid+x/pixels) + k
				features[cell] += float32(math.Min(1, math.Max(0, v)) / (pixels * pixels))
			}
		}
	}
	return features
}

// sky returns the colour of the sky at y, from 0 (the top) to 1 (the horizon).
func sky(time int, y float64) [3]float64 {
	above := [3][3]float64{{.3, .55, .95}, {.45, .3, .5}, {.03, .03, .12}}[time]
	below := [3][3]float64{{.75, .85, 1}, {1, .55, .25}, {.08, .08, .2}}[time]
	var colour [3]float64
	for k := range colour {
		colour[k] = above[k] + y*(below[k]-above[k])
	}
	return colour
}

// ground returns the colour of a pixel below the horizon, in the light of the time of
// day.
func ground(place, time, x, y, horizon int) [3]float64 {
	colour := [4][3]float64{{.9, .8, .55}, {.15, .4, .12}, {.5, .5, .52}, {.75, .77, .82}}[place]
	switch {
	case place == 0 && y < horizon+3: // the sea
		colour = [3]float64{.1, .4, .6}
	case place == 2 && (x+y)%3 == 0: // windows, lit at night
		if time == 2 {
			return [3]float64{.95, .85, .4}
		}
		colour = [3]float64{.3, .35, .45}
	}
	lit := [3][3]float64{{1, 1, 1}, {.95, .65, .5}, {.2, .2, .3}}[time]
	for k := range colour {
		colour[k] *= lit[k]
	}
	return colour
}

func abs(x int) int { return max(x, -x) }
