// Package model learns hash codes that make different kinds of data comparable: FDDH,
// fast discriminative discrete hashing (Liu, Wang, Cheung, "FDDH: Fast Discriminative
// Discrete Hashing for Large-Scale Cross-Modal Retrieval", IEEE Transactions on Neural
// Networks and Learning Systems, 2021).
//
// # What the model learns
//
// Items have vectors in some modalities (a picture, a text) and labels. Training finds an orthonormal basis C
// that turns a set of labels y into a code, h = sgn(C J y). J removes the common part of all sets of labels,
// or is the identity. For each modality t training finds a projection P_t that brings a vector x near the aim
// of its labels, z = P_t phi_t(x). phi_t is a feature map: similarities with k anchors, the vector itself
// with an intercept, or both side by side. Before that x may be standardised, or replaced by its square
// roots, logarithms or direction ([FeatureKind]). A labelled item is stored under the code of its labels. A
// query in any modality is sgn(z), and its neighbours in Hamming distance are items of its labels in every
// modality.
//
// The [Aim] of labels is C J D y, or as published the code sgn(C y), with J the identity.
//
// Package fit learns it, by one of several methods ([Method]). Two of them need no labels. Neighbours by
// their codes are neighbours by the cosine of their vectors (itq), or of vectors of one item in two
// modalities (cca-itq). The rest of this text is about the methods that learn from labels.
//
// The projections are ridge regressions from [Statistics] that add up over
// items. They stay with the model: shards merge, gamma changes, and the online
// step (eqs. 22-24 of the paper) continues without the old data.
//
// # Why projections learn C J D y
//
// Take items with one label, and let s be the regression from phi(x) to the labels, a number for each class.
// The order of s is all that the labels teach about x. Ridge regression is linear in its targets, so a
// projection that has learned the codes H of the classes is H s. Codes are signs: codes of two classes are
// not at right angles, H'H is not q I, and the distances of sgn(H s) mix the numbers of s. C'C = I, so C s
// has each of them in a direction of its own.
//
// Why J = I - 11'/c: the numbers of s add up to about 1 for every x, as the numbers of y do. So C s = C 1/c +
// C J s, and the first part is the same for all queries. It can only decide signs, in the bits in which it is
// large, and these bits then distinguish nothing. (fit.Options.Centre has fewer than 5 classes, and several
// labels.)
//
// Why D = diag((mean count / n_l)^a): let s_l be the probability of class l, and l and k
// neighbours at the head of a ranking. If the query is of class l, and its n_l items come
// behind the n_k of the other class, average precision loses about (n_k/n_l) ln(1 +
// n_l/n_k). So l has to be first if s_l times that is larger than the same for k. With r =
// n_l/n_k this is
//
//	s_l / s_k > r^2 ln(1 + 1/r) / ln(1 + r),
//
// which grows around r = 1 as r^(2 - 1/ln 2) = r^.557: classes are to be ranked by s_l /
// n_l^.557. That is for the head of a ranking and for true probabilities. Farther down
// numbers of s are small and noisy, and a weight makes noise loud, so a smaller a is
// better; it is chosen (fit.Options.Prior).
//
// # Sparse vectors
//
// A modality is dense or sparse ([Modality], [Vector]). Training and queries store, sum and multiply only the
// numbers that sparse vectors hold; anchors are stored likewise. Only a few vectors have all d dimensions.
// The rbf map takes up to 2^24 dimensions, the others up to 2^15. Codes are the same as for dense vectors:
// features agree to a few roundings of float32.
//
// # Streams
//
// An [Online] goes on learning projections from items as they come, and [Online.Revision] gives the model
// that has learned them. The code space does not change, so earlier codes remain comparable. Labelled items
// teach their labels; D follows their counts. For other items a projection gives the code to learn (a
// [Teacher]), which gains on some data and loses on other data. A [Guard] tries it, and judges by labelled
// items that it holds back. The [Lesson] of an item records its teaching: with its lesson and its vectors of
// that time an item can be forgotten or taught again. fit.Result.Lesson has the lessons of the training.
// [Online.Grow] gives a code to a label that training has not seen.
//
// # Use
//
// Package fit trains: it returns a [Model], its [Statistics] and a report. [Model.LabelCode] and
// [Encoder.Project] encode, and [Encoder.ProjectVectors] encodes many vectors. [Model.Fuse] combines the
// projections of an item. Package eval measures rankings. The example of the package is the whole flow.
//
// A Model is made by [New] of all its [Parts], which New checks: by a training, and by [Unmarshal]. It does
// not know how it was fitted. Package sum makes statistics of items in many places.
//
// Stored forms are [Model.MarshalBinary], [Statistics.MarshalBinary] and, for the
// changes of an update, [Model.MarshalRevision]. The comments of marshal.go and
// revision.go give every byte. [Unmarshal], [UnmarshalStatistics] and
// [Model.UnmarshalRevision] accept bytes of any origin.
//
// # Shapes
//
// n items, q bits, c labels, T modalities, k features and d dimensions of a modality.
// The paper has items as columns; this package has them as rows, and every matrix lies
// row by row in one slice.
//
// # Exactness
//
// A vector has the same features in training and in a query, and the same projections
// alone and among others, to the last bit (TestProjectVectorsIsProject), on all
// processors (TestSameBitsOnAllProcessors). A training on another processor may give
// another model. Features are float32, computed from vectors that are
// centred in float64 (sparse ones are not centred). Everything that is summed over
// items or features is float64, because float32 sums flip bits and break the Cholesky
// factorisation at small gamma.
//
// # Concurrency
//
// A Model is immutable and safe for concurrent use. An [Encoder] holds scratch memory,
// and Statistics, an Online and a Guard are summed into: one goroutine at a time may
// use each. There is no lock. An Online uses as many as its field Workers says.
//
// # Errors
//
// Errors are values: sentinels such as [ErrMismatch] and types such as
// [*DimensionError] that carry the numbers, for errors.Is and errors.As. The package
// does not panic, except in methods that take the position of a modality and
// return no error, when there is none at that position.
package model
