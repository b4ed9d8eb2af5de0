#include "textflag.h"

// Registers:
//	DI  where the next estimates go
//	DX  where the next bits go
//	SI  the next word of the codes, then their numbers
//	BX  how far behind SI its place in what comes next is, which is fetched meanwhile
//	CX  how many groups are left
//	R8  the planes, R9 how many words a code has
//	R10 the plane, R11 how many words are left
//	Z0 to Z3  distances from the four planes, in lanes of 64 bits
//	Z8 to Z12 far, unit, zero, reach, floor

// func scanAVX512(found *float32, hits *byte, groups *byte, n int, planes *uint64, words int, s *scale, next *byte)
TEXT ·scanAVX512(SB), NOSPLIT, $0-64
	MOVQ found+0(FP), DI
	MOVQ hits+8(FP), DX
	MOVQ groups+16(FP), SI
	MOVQ n+24(FP), CX
	MOVQ planes+32(FP), R8
	MOVQ words+40(FP), R9
	MOVQ s+48(FP), AX
	MOVQ next+56(FP), BX
	SUBQ SI, BX
	VBROADCASTSS 0(AX), Y8
	VBROADCASTSS 4(AX), Y9
	VBROADCASTSS 8(AX), Y10
	VBROADCASTSS 12(AX), Y11
	VBROADCASTSS 16(AX), Y12

group:
	VPXORQ Z0, Z0, Z0
	VPXORQ Z1, Z1, Z1
	VPXORQ Z2, Z2, Z2
	VPXORQ Z3, Z3, Z3
	MOVQ   R8, R10
	MOVQ   R9, R11

word:
	PREFETCHT0   (SI)(BX*1)
	VMOVDQU64    (SI), Z4
	VPXORQ.BCST  0(R10), Z4, Z5
	VPXORQ.BCST  8(R10), Z4, Z6
	VPXORQ.BCST  16(R10), Z4, Z7
	VPXORQ.BCST  24(R10), Z4, Z4
	VPOPCNTQ     Z5, Z5
	VPOPCNTQ     Z6, Z6
	VPOPCNTQ     Z7, Z7
	VPOPCNTQ     Z4, Z4
	VPADDQ       Z5, Z0, Z0
	VPADDQ       Z6, Z1, Z1
	VPADDQ       Z7, Z2, Z2
	VPADDQ       Z4, Z3, Z3
	ADDQ         $64, SI
	ADDQ         $32, R10
	DECQ         R11
	JNZ          word

	PREFETCHT0 (SI)(BX*1)
	PREFETCHT0 64(SI)(BX*1)
	VPADDQ     Z3, Z3, Z3
	VPADDQ     Z3, Z2, Z2
	VPADDQ     Z2, Z2, Z2
	VPADDQ     Z2, Z1, Z1
	VPADDQ     Z1, Z1, Z1
	VPADDQ     Z1, Z0, Z0
	VCVTUQQ2PS Z0, Y0
	VMULPS     Y9, Y0, Y0
	VADDPS     Y10, Y0, Y0
	VMULPS     (SI), Y0, Y0
	VMOVUPS    32(SI), Y1
	VADDPS     Y8, Y1, Y1
	VADDPS     Y0, Y1, Y0
	VMOVUPS    Y0, (DI)
	VMULPS     64(SI), Y11, Y1
	VSUBPS     Y1, Y0, Y0
	VCMPPS     $2, Y12, Y0, K1
	KMOVB      K1, AX
	MOVB       AX, (DX)
	ADDQ       $128, SI
	ADDQ       $32, DI
	INCQ       DX
	DECQ       CX
	JNZ        group
	VZEROUPPER
	RET
