package codec

// Fingerprint returns the 64 bits by which a code is found again on disk. It is
// part of the format: for each word w of the code, the first first, from h = 0,
//
//	h = (h xor w) + 9e3779b97f4a7c15
//	h = (h xor h>>30) * bf58476d1ce4e5b9
//	h = (h xor h>>27) * 94d049bb133111eb
//	h = h xor h>>31
//
// modulo 2^64, which for a code of one word is the first output of SplitMix64
// (Steele, Lea and Flood, OOPSLA 2014) seeded with it. Each step is a bijection,
// so codes that differ in one word only never collide. It is no defence against
// codes that were chosen to collide: whoever finds a code by its fingerprint
// compares the code too.
func Fingerprint(code Code) uint64 {
	var h uint64
	for _, w := range code {
		h = (h ^ w) + 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}
