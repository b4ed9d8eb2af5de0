#include "textflag.h"
#include "hamming_avx512_amd64.h"

// Distances of codes that follow each other, 16 bits each. STARTDISTANCES leaves a
// pointer to the query in DX.
#define STARTDISTANCES \
	MOVQ dst+0(FP), DI;    \
	MOVQ codes+8(FP), SI;  \
	MOVQ n+16(FP), CX;     \
	MOVQ query+24(FP), DX; \
	MOVL $-1, R15

// func distances1AVX512(dst *uint16, codes *uint64, n int, query *uint64)
TEXT ·distances1AVX512(SB), NOSPLIT, $0-32
	STARTDISTANCES
	VPBROADCASTQ (DX), Z15
	SUBQ         $8, CX
	JLT          tail

loop8:
	VPXORQ   (SI), Z15, Z0
	VPOPCNTQ Z0, Z0
	VPMOVQW  Z0, X0
	VMOVDQU  X0, (DI)
	ADDQ     $64, SI
	ADDQ     $16, DI
	SUBQ     $8, CX
	JGE      loop8

tail:
	ADDQ      $8, CX
	FIRST(CX, K1)
	VPXORQ.Z  (SI), Z15, K1, Z0
	VPOPCNTQ  Z0, Z0
	VPMOVQW   Z0, X0
	VMOVDQU16 X0, K1, (DI)
	VZEROUPPER
	RET

// func distances2AVX512(dst *uint16, codes *uint64, n int, query *uint64)
TEXT ·distances2AVX512(SB), NOSPLIT, $0-32
	STARTDISTANCES
	VBROADCASTI32X4 (DX), Z15
	VMOVDQU64       order2<>(SB), Z11
	SUBQ            $8, CX
	JLT             tail

loop8:
	VPXORQ   (SI), Z15, Z0
	VPXORQ   64(SI), Z15, Z1
	VPOPCNTQ Z0, Z0
	VPOPCNTQ Z1, Z1
	SUM2(Z0, Z1, Z2)
	VPERMQ   Z0, Z11, Z0
	VPMOVQW  Z0, X0
	VMOVDQU  X0, (DI)
	ADDQ     $128, SI
	ADDQ     $16, DI
	SUBQ     $8, CX
	JGE      loop8

tail:
	ADDQ      $8, CX
	LEAQ      (CX)(CX*1), AX
	FIRST(AX, K2)
	KSHIFTRD  $8, K2, K3
	FIRST(CX, K1)
	VPXORQ.Z  (SI), Z15, K2, Z0
	VPXORQ.Z  64(SI), Z15, K3, Z1
	VPOPCNTQ  Z0, Z0
	VPOPCNTQ  Z1, Z1
	SUM2(Z0, Z1, Z2)
	VPERMQ    Z0, Z11, Z0
	VPMOVQW   Z0, X0
	VMOVDQU16 X0, K1, (DI)
	VZEROUPPER
	RET

// func distancesNAVX512(dst *uint16, codes *uint64, n int, query *uint64, w int)
TEXT ·distancesNAVX512(SB), NOSPLIT, $0-40
	STARTDISTANCES
	MOVQ w+32(FP), R14
	FOURSTART
	MOVL $4, AX
	FIRST(AX, K5)
	SUBQ $4, CX
	JLT  tail

loop4:
	FOUR(vector, sum)
	VPMOVQW   Z0, X0
	VMOVDQU16 X0, K5, (DI)
	FOURNEXT
	ADDQ      $8, DI
	SUBQ      $4, CX
	JGE       loop4

tail:
	ADDQ $4, CX
	JLE  done
	FOURLAST
	SUBQ $4, CX
	JMP  loop4

done:
	VZEROUPPER
	RET
