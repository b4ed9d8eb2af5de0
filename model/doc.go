// Package model learns hash codes that make different kinds of data comparable:
// FDDH, fast discriminative discrete hashing (Liu, Wang, Cheung, "FDDH: Fast
// Discriminative Discrete Hashing for Large-Scale Cross-Modal Retrieval", IEEE
// Transactions on Neural Networks and Learning Systems, 2021).
//
// # What is learned
//
// Items have vectors in some modalities (a picture, a text) and labels.
// Training finds an orthonormal basis C that turns a set of labels y into a
// code, h = sgn(C y), and for each modality t a projection P_t that brings a
// vector x near the codes of its labels, z = P_t phi_t(x). phi_t is a feature
// map: similarities with k anchors, the vector itself with an intercept, or both
// side by side; before that x may be standardised, or its square roots, logarithms
// or direction taken ([FeatureKind]). A
// labelled item is stored under the code of its labels; a query in any modality
// is sgn(z), and its neighbours in Hamming distance are items of its labels in
// every modality.
//
// Three methods minimise the same objective from the same random start (see
// the comment of solver for the mathematics):
//
//   - labels, the default, needs the label sets alone: the limit of a large
//     delta, where the published one (1e4) already is. Milliseconds.
//   - joint takes the exact step over C and the feature rotations together.
//   - paper takes the published steps one by one.
//
// The projections are ridge regressions from [Statistics] that add up over
// items. They stay with the model: shards merge, gamma changes, and the online
// step (eqs. 22-24 of the paper) continues without the old data.
//
// # Sparse vectors
//
// A modality is dense or sparse ([Modality], [Vector]). Of sparse vectors only the
// numbers that they hold are kept, summed and multiplied, in training and in
// queries, and anchors are stored likewise; what remains of the dimensions d is some
// vectors of d numbers. The rbf map takes up to 2^24 dimensions, the others up to
// 2^15. Codes are those of the same vectors in a dense modality: features agree to a
// few roundings of float32.
//
// # What is chosen
//
// What the options do not say of a modality (features, map, and the ridge gamma) is
// chosen from a sample of the training items, by cross-validation with retrieval as
// the criterion: a fold's items are queries, their codes come from projections
// learned on the other folds, and what they are ranked against are the codes of
// the labels of the other folds' items ([Choice]). Then C is chosen by the same
// criterion, in the mean over the modalities, among those to which up to 48 random
// starts lead ([StartChoice]), unless labels are embedded. It takes seconds at most,
// however many items there are. [Report] has all that was tried, and by what margin
// the choice won. With fewer than 50 items nothing is chosen, nor where the options
// give everything: then there is the one start of the seed.
//
// Then it is measured how the projections of an item without labels best make its
// code ([FusionChoice]): their sum, a weighted sum or one of them alone, with or
// without the mean code. [Model.Fuse] does what was chosen.
//
// # Streams
//
// An [Online] goes on learning projections from items as they come, and
// [Online.Revision] gives the model that has learned them; the code space stays, so that
// codes made earlier remain comparable. Labelled items teach the code of their labels.
// For others a projection says which code is to be learned (a [Teacher]), which on some
// data gains and on other data loses: a [Guard] tries it and judges by labelled items
// that it holds back. What an item has taught is its [Lesson]: with it, and its vectors as
// they were, the item can be forgotten, or taught again. [Result.Lesson] has those of the
// training. [Online.Grow] gives a label that training has not seen a code.
//
// # Use
//
// [Train] reads a [Source] twice or a few times and returns a [Model], its
// [Statistics] and a [Report]. [Model.LabelCode], [Encoder.Project] and, for many
// vectors, [Encoder.ProjectAll] and [Encoder.ProjectVectors] encode, and [Model.Fuse]
// makes the projections of an item into one; [Evaluate] measures rankings. The example
// of the package is the whole flow.
//
// Stored forms are [Model.MarshalBinary], [Statistics.MarshalBinary] and, for what an
// update changes of a model, [Model.MarshalRevision]; the comments of marshal.go and
// revision.go give every byte. [Unmarshal], [UnmarshalStatistics] and
// [Model.UnmarshalRevision] accept bytes from anywhere.
//
// # Shapes
//
// n items, q bits, c labels, T modalities, k features and d dimensions of a
// modality. Where the paper has items as columns, this package has them as
// rows, and every matrix lies row by row in one slice.
//
// # Exactness
//
// Equal data, options and seed give equal bytes on one architecture, whatever
// the number of processors; on amd64, all machines with AVX2 and FMA are one
// architecture, and those without are another. A vector has the same features in
// training and in a query, and the same projections alone and among others, to the
// last bit. Features are float32, computed from vectors that are centred in
// float64, but for sparse ones; everything that is summed over items or features is float64, because
// float32 sums flip bits and break the Cholesky factorisation at small gamma.
//
// # Concurrency
//
// A Model is immutable and safe for concurrent use. An [Encoder] holds scratch
// memory, and Statistics, an Online and a Guard are summed into: one goroutine at a time.
// Train and Evaluate use GOMAXPROCS goroutines and leave none behind; an Online as many
// as its field Workers says.
//
// # Errors
//
// Errors are values: sentinels such as [ErrOneClass] and types such as
// [*BitsError] that carry the numbers, for errors.Is and errors.As. The package
// does not panic, except in methods that take the position of a modality and
// return no error, when there is none at that position.
//
// # Caveats
//
//   - c labels need at least c bits, or label embedding ([Options].LabelEmbedding,
//     method labels), which costs some retrieval; [Embedding] says how much.
//   - More sweeps lower the objective, but with many labels retrieval suffers
//     and bits become constant; the report shows balance and constant bits.
//   - All items of one label set share one code, so a ranking by distance has
//     huge ties: Metrics reports MAP in row order and its expectation over them.
//   - The best gamma lies anywhere from 1e-5 to 1, per modality, and depends on the
//     features. Who knows better than the sample gives it; [Model.Refit] makes
//     trying cheap.
package model
