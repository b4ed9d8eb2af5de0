package main

func Example() {
	main()
	// Output:
	// picture 60 cropped looks like picture 60: distance 4 of 64 bits
	// picture 120 darker looks like picture 120: distance 0 of 64 bits
	// picture 180 smaller looks like picture 180: distance 1 of 64 bits
	// picture 240 saved badly looks like picture 240: distance 3 of 64 bits
}
