// Stream measures the value of learning while items keep coming. A database is trained on
// the first tenth of a generated set. The rest arrives in chunks, and after each chunk the
// projections are updated, or not. The program prints mAP of held-out queries over all
// items that have been seen, and draws it against their number. At the end it says
// how much of the quality of a new training the updates keep, how long they took, and when
// to train again.
//
//	go run ./examples/stream [-set NAME] [-noise X] [-items N] [-seeds N] [-out FILE.svg]
//
// If items come with their labels, their codes are the codes of the labels. The ways are
//
//   - updated: each chunk teaches, by its labels;
//   - never updated: the model stays the one of the first tenth;
//   - trained on all: a new training at the end, in a new code space, which takes over.
//
// If items come without labels, the projections of the moment make their codes, which do
// not change. The ways are
//
//   - stronger modality, guarded: the code that the better modality gives an item teaches
//     all modalities, if held-back labelled items are found better after it;
//   - stronger modality: the same, unguarded;
//   - self: each modality learns from its own codes, as in the paper (Liu, Wang, Cheung:
//     FDDH, IEEE TNNLS 2021, eqs. 22-24);
//   - never updated.
//
// The sets have pictures and texts that share nothing but their labels. nuswide has the
// shape of the set of that name (synth.NUSWide); an item has several of ten labels. pairs
// has Gaussian clusters of 24 labels, one for an item (synth.Pairs). On nuswide, codes that
// modalities make themselves teach their mistakes, and the guard is for that; on pairs they
// teach well. -noise makes a set easier or harder.
//
// The program imports db, model and synth. TestStream proves that the figures are the same
// each time, that updates with labels are worth it, and that the conclusion agrees with the
// tables.
package main
