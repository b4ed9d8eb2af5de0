package simd

import "golang.org/x/sys/cpu"

// Sets returns the sets that this machine can run, the fastest first. AVX512 is among them only if the
// machine has the extensions, too.
func Sets(need Extension) []Set {
	sets := []Set{Generic}
	x := &cpu.X86
	if x.HasAVX2 && x.HasBMI2 && x.HasFMA && x.HasPOPCNT {
		sets = append([]Set{AVX2}, sets...)
		extended := (need&VPOPCNTDQ == 0 || x.HasAVX512VPOPCNTDQ) &&
			(need&BITALG == 0 || x.HasAVX512BITALG) && (need&VNNI == 0 || x.HasAVX512VNNI)
		if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && extended {
			sets = append([]Set{AVX512}, sets...)
		}
	}
	return sets
}
