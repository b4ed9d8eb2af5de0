#include "textflag.h"

// The assembler has no names for these.
//	UADDLP Vd.8H, Vn.16B        adds each two bytes that stand side by side to a number of 16 bits
//	UADALP Vd.8H, Vn.16B        adds them to that which there is
//	UCVTF, FMUL, FADD, FSUB     of four float32 each
//	FCMGE  Vd.4S, Vn.4S, Vm.4S  all ones where Vn is not less than Vm
#define UADDLP(N, D) WORD $(0x6E202800 | (N)<<5 | (D))
#define UADALP(N, D) WORD $(0x6E206800 | (N)<<5 | (D))
#define UADDLP16(N, D) WORD $(0x6E602800 | (N)<<5 | (D))
#define UCVTF(N, D) WORD $(0x6E21D800 | (N)<<5 | (D))
#define FMUL(M, N, D) WORD $(0x6E20DC00 | (M)<<16 | (N)<<5 | (D)) // D = N * M
#define FADD(M, N, D) WORD $(0x4E20D400 | (M)<<16 | (N)<<5 | (D)) // D = N + M
#define FSUB(M, N, D) WORD $(0x4EA0D400 | (M)<<16 | (N)<<5 | (D)) // D = N - M
#define FCMGE(M, N, D) WORD $(0x6E20E400 | (M)<<16 | (N)<<5 | (D))

// Registers:
//	R0  where the next estimates go
//	R1  where the next bits go
//	R2  the next word of the group, then its numbers
//	R3  how many groups are left
//	R4  the planes, and R7 where in them
//	R5  how many words a code has
//	R6  how far behind R2 its place in what comes next is, which is fetched meanwhile
//	R8  how many words are left behind the block, R9 in the block
//	V0 to V15  distances from the planes, a byte each: of two codes from all four, then of the next two
//	V16 to V19 a word of the group, two codes each, and V20 to V23 of the planes
//	V24 scratch
//	V25 far, unit, zero and reach; V26 the floor in all lanes
//	V27 1, 2, 4 and 8
//	V28 the sums of the first four codes, V29 of the others

// How many words are summed in bytes: each adds up to 8.
#define BLOCK 31

#define DISTANCE(WORDS, PLANE, SUM) \
	VEOR PLANE.B16, WORDS.B16, V24.B16; \
	VCNT V24.B16, V24.B16;              \
	VADD V24.B16, SUM.B16, SUM.B16

#define DISTANCES(WORDS, S0, S1, S2, S3) \
	DISTANCE(WORDS, V20, S0); \
	DISTANCE(WORDS, V21, S1); \
	DISTANCE(WORDS, V22, S2); \
	DISTANCE(WORDS, V23, S3)

#define ZERO(S0, S1, S2, S3) \
	VEOR S0.B16, S0.B16, S0.B16; \
	VEOR S1.B16, S1.B16, S1.B16; \
	VEOR S2.B16, S2.B16, S2.B16; \
	VEOR S3.B16, S3.B16, S3.B16

// WEIGH writes the weighted sums of the distances in V(S) to V(S+3) to V, whose number is D: four lanes
// of 32 bits, two of each code.
#define WEIGH(S, V, D) \
	UADDLP(S+3, D);      \
	VSHL $1, V.H8, V.H8; \
	UADALP(S+2, D);      \
	VSHL $1, V.H8, V.H8; \
	UADALP(S+1, D);      \
	VSHL $1, V.H8, V.H8; \
	UADALP(S, D);        \
	UADDLP16(D, D)

// ESTIMATE makes estimates of the sums in V(S) and the numbers at R2, and writes all ones to V(D) in
// the lanes of those that may be as near as the floor. V30 is far, V31 reach, V20 unit, V21 zero.
#define ESTIMATE(S, D, SLOPE, BASE, SPREAD) \
	UCVTF(S, S);          \
	FMUL(20, S, S);       \
	FADD(21, S, S);       \
	FMUL(SLOPE, S, S);    \
	FADD(30, BASE, BASE); \
	FADD(S, BASE, S);     \
	FMUL(31, SPREAD, D);  \
	FSUB(D, S, D);        \
	FCMGE(D, 26, D)

// func scanNEON(found *float32, hits *byte, groups *byte, n int, planes *uint64, words int, s *scale, next *byte)
TEXT ·scanNEON(SB), NOSPLIT, $0-64
	MOVD  found+0(FP), R0
	MOVD  hits+8(FP), R1
	MOVD  groups+16(FP), R2
	MOVD  n+24(FP), R3
	MOVD  planes+32(FP), R4
	MOVD  words+40(FP), R5
	MOVD  s+48(FP), R10
	MOVD  next+56(FP), R6
	SUB   R2, R6
	VLD1  (R10), [V25.S4]
	MOVWU 16(R10), R11
	VDUP  R11, V26.S4
	MOVD  $0x0000000200000001, R11
	VMOV  R11, V27.D[0]
	MOVD  $0x0000000800000004, R11
	VMOV  R11, V27.D[1]

group:
	MOVD R4, R7
	MOVD R5, R8
	VEOR V28.B16, V28.B16, V28.B16
	VEOR V29.B16, V29.B16, V29.B16

block:
	MOVD $BLOCK, R9
	CMP  R9, R8
	CSEL LT, R8, R9, R9
	SUB  R9, R8
	ZERO(V0, V1, V2, V3)
	ZERO(V4, V5, V6, V7)
	ZERO(V8, V9, V10, V11)
	ZERO(V12, V13, V14, V15)

word:
	ADD     R6, R2, R10
	PRFM    (R10), PLDL1KEEP
	VLD1.P  64(R2), [V16.B16, V17.B16, V18.B16, V19.B16]
	VLD4R.P 32(R7), [V20.D2, V21.D2, V22.D2, V23.D2]
	DISTANCES(V16, V0, V1, V2, V3)
	DISTANCES(V17, V4, V5, V6, V7)
	DISTANCES(V18, V8, V9, V10, V11)
	DISTANCES(V19, V12, V13, V14, V15)
	SUBS    $1, R9
	BNE     word

	WEIGH(0, V20, 20)
	WEIGH(4, V21, 21)
	WEIGH(8, V22, 22)
	WEIGH(12, V23, 23)
	VADDP V21.S4, V20.S4, V20.S4
	VADDP V23.S4, V22.S4, V22.S4
	VADD  V20.S4, V28.S4, V28.S4
	VADD  V22.S4, V29.S4, V29.S4
	CBNZ  R8, block

	ADD    R6, R2, R10
	PRFM   (R10), PLDL1KEEP
	PRFM   64(R10), PLDL1KEEP
	VLD1.P 64(R2), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1   (R2), [V4.S4, V5.S4]
	ADD    $64, R2
	VDUP   V25.S[0], V30.S4
	VDUP   V25.S[1], V20.S4
	VDUP   V25.S[2], V21.S4
	VDUP   V25.S[3], V31.S4
	ESTIMATE(28, 6, 0, 2, 4)
	ESTIMATE(29, 7, 1, 3, 5)
	VST1.P [V28.S4, V29.S4], 32(R0)

	// The bits that follow each other add up.
	VAND   V27.B16, V6.B16, V6.B16
	VAND   V27.B16, V7.B16, V7.B16
	VSHL   $4, V7.S4, V7.S4
	VADD   V7.S4, V6.S4, V6.S4
	VADDV  V6.S4, V6
	FMOVS  F6, R10
	MOVB.P R10, 1(R1)
	SUBS   $1, R3
	BNE    group
	RET
