// Package traintime measures the time of training against the number of items. The data has the
// shape of NUS-WIDE; package synth makes it:
//
//	experiments traintime
//	experiments traintime --items 1000,184000 --method joint --anchors 400
//	experiments traintime --items 184000 --dense --peer python3
//
// Each number of items is measured in a process of its own, so that its peak of memory
// includes nothing else. The goroutine that reads makes the items as training reads
// them, once in each pass. That time is part of the total and has a column. The columns
// of mAP come from --queries items that follow the training items, searched among the
// label codes of all training items; chance is the mean share of relevant items. With
// --peer, training is compared with the same arithmetic in numpy (peer.py).
//
// The package imports package model, not package db. TestRun proves that the data is
// worth learning from, TestCompare that both sides run on the same items.
package traintime
