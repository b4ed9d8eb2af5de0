#include "textflag.h"
#include "hamming_avx512_amd64.h"

// The kernels for ranges use the registers of the others for the range at hand:
// SI points to its next code, BX is that code's position and CX the number of
// codes that are left of it. Further:
//	R8  how many more codes dst has room for
//	R9  the number of codes of the array
//	R10 where the next beginning is
//	R11 where the next end is
//	R12 how many ranges are left, less 1
//	R13 the array of codes
//	R14 how many ranges ahead are fetched, or fewer towards the end

// How many ranges ahead the beginnings are fetched.
#define RANGESAHEAD 12

#define STARTRANGES \
	MOVQ         dst+0(FP), DI;     \
	MOVQ         room+8(FP), R8;    \
	MOVQ         codes+16(FP), R13; \
	MOVQ         n+24(FP), R9;      \
	MOVQ         from+32(FP), R10;  \
	MOVQ         to+40(FP), R11;    \
	MOVQ         k+48(FP), R12;     \
	MOVQ         query+56(FP), DX;  \
	VPBROADCASTQ r+64(FP), Z14;     \
	VMOVDQU64    lanes<>(SB), Z13;  \
	MOVL         $-1, R15;          \
	DECQ         R12;               \
	MOVL         $RANGESAHEAD, R14

// RANGE loads and checks the next range, of codes of 1<<S bytes.
#define RANGE(S) \
	MOVL (R10), BX; \
	MOVL (R11), CX; \
	ADDQ $4, R10;   \
	ADDQ $4, R11;   \
	MOVQ BX, SI;    \
	CMPQ CX, R9;    \
	JHI  bad;       \
	SUBQ BX, CX;    \
	JCS  bad;       \
	SUBQ CX, R8;    \
	JLT  bad;       \
	SHLQ $S, SI;    \
	ADDQ R13, SI

// func withinRanges1AVX512(dst *Near, room int, codes *uint64, n int, from, to *uint32, k int, query *uint64, r int) int
TEXT ·withinRanges1AVX512(SB), NOSPLIT, $0-80
	STARTRANGES
	VPBROADCASTQ (DX), Z15

loop:
	CMPQ       R14, R12
	CMOVQGT    R12, R14
	MOVL       (R10)(R14*4), AX
	MOVL       (R11)(R14*4), DX
	PREFETCHT0 (R13)(AX*8)
	PREFETCHT0 64(R13)(AX*8)
	PREFETCHT0 -8(R13)(DX*8)
	RANGE(3)
	CMPQ       CX, $16
	JGT        long

block:
	FIRST(CX, K2)
	KSHIFTRD $8, K2, K3
	VPXORQ.Z (SI), Z15, K2, Z0
	VPXORQ.Z 64(SI), Z15, K3, Z1
	VPOPCNTQ Z0, Z0
	VPOPCNTQ Z1, Z1
	VPCMPQ   $2, Z14, Z0, K2, K1
	VPCMPQ   $2, Z14, Z1, K3, K2
	KORTESTB K1, K2
	JNZ      keep

next:
	DECQ R12
	JGE  loop
	RETURN(ret+72(FP))

keep:
	KEEP(Z0, K1, 0)
	KEEP(Z1, K2, 8)
	JMP next

long:
	VPXORQ   (SI), Z15, Z0
	VPXORQ   64(SI), Z15, Z1
	VPOPCNTQ Z0, Z0
	VPOPCNTQ Z1, Z1
	VPCMPQ   $2, Z14, Z0, K1
	VPCMPQ   $2, Z14, Z1, K2
	KORTESTB K1, K2
	JNZ      keeplong

nextlong:
	ADDQ $128, SI
	ADDQ $16, BX
	SUBQ $16, CX
	CMPQ CX, $16
	JGT  long
	JMP  block

keeplong:
	KEEP(Z0, K1, 0)
	KEEP(Z1, K2, 8)
	JMP nextlong

bad:
	MOVQ $-1, ret+72(FP)
	VZEROUPPER
	RET

// func withinRanges2AVX512(dst *Near, room int, codes *uint64, n int, from, to *uint32, k int, query *uint64, r int) int
TEXT ·withinRanges2AVX512(SB), NOSPLIT, $0-80
	STARTRANGES
	VBROADCASTI32X4 (DX), Z15
	VMOVDQU64       order2<>(SB), Z11

loop:
	CMPQ       R14, R12
	CMOVQGT    R12, R14
	MOVL       (R10)(R14*4), AX
	MOVL       (R11)(R14*4), DX
	SHLQ       $4, AX
	SHLQ       $4, DX
	PREFETCHT0 (R13)(AX*1)
	PREFETCHT0 64(R13)(AX*1)
	PREFETCHT0 128(R13)(AX*1)
	PREFETCHT0 -8(R13)(DX*1)
	RANGE(4)

block:
	MOVL     $16, AX
	CMPQ     CX, AX
	CMOVQLT  CX, AX
	FIRST(AX, K1)
	ADDQ     AX, AX
	FIRST(AX, K2)
	KSHIFTRD $8, K2, K3
	KSHIFTRD $16, K2, K4
	KSHIFTRD $24, K2, K5
	VPXORQ.Z (SI), Z15, K2, Z0
	VPXORQ.Z 64(SI), Z15, K3, Z1
	VPXORQ.Z 128(SI), Z15, K4, Z2
	VPXORQ.Z 192(SI), Z15, K5, Z3
	VPOPCNTQ Z0, Z0
	VPOPCNTQ Z1, Z1
	VPOPCNTQ Z2, Z2
	VPOPCNTQ Z3, Z3
	SUM2(Z0, Z1, Z4)
	SUM2(Z2, Z3, Z5)
	VPERMQ   Z0, Z11, Z0
	VPERMQ   Z2, Z11, Z2
	KSHIFTRD $8, K1, K2
	VPCMPQ   $2, Z14, Z0, K1, K1
	VPCMPQ   $2, Z14, Z2, K2, K2
	KORTESTB K1, K2
	JNZ      keep

next:
	ADDQ $256, SI
	ADDQ $16, BX
	SUBQ $16, CX
	JGT  block
	DECQ R12
	JGE  loop
	RETURN(ret+72(FP))

keep:
	KEEP(Z0, K1, 0)
	KEEP(Z2, K2, 8)
	JMP next

bad:
	MOVQ $-1, ret+72(FP)
	VZEROUPPER
	RET
