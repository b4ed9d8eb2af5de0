// Traintime measures training against the number of items, on data of the shape of
// NUS-WIDE that package synth makes:
//
//	cd internal/measure
//	go run ./traintime
//	go run ./traintime -n 1000,184000 -method joint -anchors 400
//	go run ./traintime -n 184000 -dense -peer python3
//
// Each number of items has a process of its own, so that its peak of memory is that
// of nothing else. Items are made as training reads them, once a pass, by the
// goroutine that reads: that time is part of the total and stands beside it. The
// columns of mAP are those of -queries items that follow the training items, against
// the label codes of all of these; chance is the mean share of relevant items. With
// -peer, training is compared with the same arithmetic written with numpy (peer.py).
package main
