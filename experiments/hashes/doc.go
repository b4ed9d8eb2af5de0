// Package hashes measures how well hashes of pictures find copies, on a folder of photographs:
//
//	experiments hashes [--precision 0.99] FOLDER
//
// The database has the hash of each photograph. Queries are copies of all of them, changed in one way:
//
//   - half: scaled to 50 %;
//   - cropped: 5 % of the width and of the height are cut off, half at each edge;
//   - recoded: saved as JPEG of quality 30;
//   - tinted: red times 1.15, blue times 0.8.
//
// A copy finds the photographs within a radius. Recall is the part of the copies that find their original.
// Precision is the part of what all copies find that is an original of theirs. The radius of a row is the
// largest of which the precision is at least --precision. Photographs that are copies of each other count as
// mistakes, so figures of precision are lower bounds.
//
// The last columns are the recall and precision within the radius that package perceptual advises.
package hashes
