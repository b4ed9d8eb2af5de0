package main

// measured are the rates of docs/BENCHMARKS.md: a million pairs of 128 and 128 dimensions, 20 labels, 64
// bits, 800 anchors, and ten million codes of 64 bits, by fddhdb-beam on two cores with AVX-512. They add up
// to within a tenth of the processor time of train and build there.
var measured = rates{
	survey:     1e-6,
	check:      250e6,
	read:       700e6,
	moments:    250e6,
	statistics: 23.5e9,
	encode:     25e9,
	split:      500e6,
	load:       3.7e-6,
	loadBytes:  62e6,
	draw:       13e-9,
	choose:     3,
}
