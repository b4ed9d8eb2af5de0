package main

import "testing"

func TestDiffer(t *testing.T) {
	for _, test := range []struct {
		replicas []replicaStatus
		want     bool
	}{
		{nil, false},
		{[]replicaStatus{{checked: 5, sum: 1}, {checked: 5, sum: 1}}, false},
		{[]replicaStatus{{checked: 5, sum: 1}, {checked: 5, sum: 2}}, true},
		{[]replicaStatus{{checked: 5, sum: 1}, {checked: 9, sum: 2}}, false}, // one has seen another day
		{[]replicaStatus{{}, {sum: 2}}, false},
		{[]replicaStatus{{checked: 5, sum: 1}, {}, {checked: 5, sum: 2}}, true},
	} {
		if got := differ(test.replicas); got != test.want {
			t.Errorf("%+v: %v", test.replicas, got)
		}
	}
}
