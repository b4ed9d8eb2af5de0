// Package joins measures how long it takes to find all pairs of codes that are near each other, and checks
// them:
//
//	experiments joins
//	experiments joins --bits 256 --items 1000000 --radius 31
//
// One code in a hundred is a copy of another one, with as many flipped bits as the radius has at most. Up to
// 20,000 codes all pairs are compared with those of a scan of all pairs. Of more codes the pairs of --check
// of them are compared with those of a scan. The scan of all pairs is predicted from that.
package joins
