package main

func Example() {
	main()
	// Output:
	// picture 60 cropped looks like picture 60: 4 bits of 64 differ
	// picture 120 darker looks like picture 120: 0 bits of 64 differ
	// picture 180 smaller looks like picture 180: 1 bits of 64 differ
	// picture 240 saved badly looks like picture 240: 3 bits of 64 differ
}
