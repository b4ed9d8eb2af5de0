// Package fit learns models from items: it solves for codes and projections, and chooses the settings that
// the options leave open. The comment of package model explains the model.
//
// [Train] reads a [sum.Source] a few times and returns a [Result]: a model, its statistics and a [Report].
// [TrainOver] does the same with items that lie in many places, to the last bit. [UpdateOver] refits the
// projections of a model to such items. A [File] is a model that travels with the names of its labels and its
// report.
//
// # Methods
//
// Three methods minimise the same objective from the same random start; see the comment
// of solver for the mathematics:
//
//   - labels, the default, needs the label sets alone. It is the limit of a large
//     delta, which the published delta (1e4) already reaches. It takes milliseconds.
//   - joint takes the exact step over C and the feature rotations together.
//   - paper takes the published steps one by one.
//
// Two methods need no labels, itq and cca-itq: labelfree.go has what they compute.
//
// # Phases
//
// A training with labels is a row of functions, each of which takes what those before it have returned:
//
//   - scan: items -> label sets, the random H0 Y0', moments, candidates for anchors, samples to choose with
//   - choose: these -> settings by modality, centre, prior, start of C, fusion. For each modality: settings
//     are tried on its sample (chooser), and the best gives held-out projections (tuning)
//   - maps: settings, moments, anchors -> feature maps
//   - embedding: maps, items -> vectors of labels, if there are more labels than bits
//   - sweeps: label sets, H0 Y0', maps -> codes (solution)
//   - statistics: a model with these codes, items -> sums
//   - solve: sums -> projections, and the report of all
//
// Without labels there are fewer; see trainLabelFree.
//
// # Chosen settings
//
// Settings of a modality that the options leave open (features, map, its width, and the
// ridge gamma) are chosen from a sample of the training items, by leaving one out at a
// time. The criterion is retrieval: the item is a query, with the code of projections
// that all others have taught, among the codes of the labels of the others ([Choice]), in
// the mean over some random starts of C. Then the centre if items have several labels, the
// prior and, unless labels are embedded, the start (of up to 48) are chosen by the same
// criterion, in the mean over the modalities. That takes seconds, however many items there
// are. [Report] has what was taken, and each [Choice] what was tried. Nothing is chosen with fewer than 50
// items, or if the options give everything: then the start is the one of the seed.
//
// The code of an item without labels is a weighted sum of its projections, less the mean aim ([FusionChoice],
// [model.Model.Fuse]).
//
// # Invariants
//
// Equal data, options and seed give equal bytes on one architecture, for any number of
// processors: TestAnyProcessors. TrainOver gives the bytes of Train: TestTrainOver.
// TestGolden compares every matrix of every sweep with a published run, and
// TestSolverAgainstLiteral with the paper written down literally.
//
// # Caveats
//
//   - c labels need at least c bits, or label embedding ([Options].LabelEmbedding,
//     method labels), which costs some retrieval; [Embedding] says how much.
//   - More sweeps lower the objective, but with many labels retrieval suffers
//     and bits become constant; the report shows balance and constant bits.
//   - The best gamma lies anywhere from 1e-5 to 10 for an rbf map, per modality, and
//     depends on the features. Give a gamma if you know better than the sample;
//     [model.Model.Refit] makes trying cheap.
package fit
