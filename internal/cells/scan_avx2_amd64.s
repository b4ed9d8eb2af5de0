#include "textflag.h"

// The codes of two groups are looked at together, so that a vector has byte p of all 16 codes in its
// lower half, and byte p+1 in its upper half. The halves of a byte choose what they count from the
// tables of their place, see tabulate: at most 60, so that four fit into a byte.
//
// Registers:
//	DI  where the next estimates go
//	DX  where the next bits go
//	SI  the next word of the first group, then its numbers
//	R12 the same of the second group, which is the first again where no other is left
//	R13 1 if there is a second group, else 0
//	BX  how many bytes a group has
//	CX  how many groups are left
//	R8  the tables, R9 how many words a code has
//	R10 the tables of the word, R11 how many words are left behind the block, AX in the block
//	R15 how far behind SI and R12 their places in what comes next are, which is fetched meanwhile
//	Y8  of each two codes that stand side by side the first sum + 256 times the second, in lanes of
//	    16 bits, and Y9 the second
//	Y10 15 in every byte
//	Y11 the sums of the first group, and Y12 of the second, in lanes of 32 bits

// How many words are summed in lanes of 16 bits: each adds up to 480.
#define BLOCK 128

// LOOKUP replaces each byte of V by what its halves count in the tables at OFF. Clobbers T and U.
#define LOOKUP(OFF, V, T, U) \
	VPSRLW  $4, V, T;         \
	VPAND   Y10, V, V;        \
	VPAND   Y10, T, T;        \
	VMOVDQU OFF(R10), U;      \
	VPSHUFB V, U, V;          \
	VMOVDQU (OFF+32)(R10), U; \
	VPSHUFB T, U, T;          \
	VPADDB  T, V, V

// WIDEN makes 8 lanes of 32 bits of the 16 of V, each the sum of one of the lower half and the one at
// its place in the upper half. X is the lower half of V. Clobbers T and TX, its lower half.
#define WIDEN(X, V, TX, T) \
	VEXTRACTI128 $1, V, TX; \
	VPMOVZXWD    X, V;      \
	VPMOVZXWD    TX, T;     \
	VPADDD       T, V, V

// ESTIMATE makes estimates of the sums in V and the numbers at P, and sets R to the bits of those that
// may be as near as the floor. Clobbers Y0, Y1 and AX.
#define ESTIMATE(P, V, R) \
	MOVQ         s+48(FP), AX;   \
	VPERMQ       $0xD8, V, V;    \
	VCVTDQ2PS    V, V;           \
	VBROADCASTSS 4(AX), Y0;      \
	VMULPS       Y0, V, V;       \
	VBROADCASTSS 8(AX), Y0;      \
	VADDPS       Y0, V, V;       \
	VMULPS       (P), V, V;      \
	VBROADCASTSS (AX), Y0;       \
	VADDPS       32(P), Y0, Y0;  \
	VADDPS       V, Y0, V;       \
	VBROADCASTSS 12(AX), Y0;     \
	VMULPS       64(P), Y0, Y0;  \
	VSUBPS       Y0, V, Y0;      \
	VBROADCASTSS 16(AX), Y1;     \
	VCMPPS       $2, Y1, Y0, Y0; \
	VMOVMSKPS    Y0, R

// func scanAVX2(found *float32, hits *byte, groups *byte, n int, tables *uint64, words int, s *scale, next *byte)
TEXT ·scanAVX2(SB), NOSPLIT, $0-64
	MOVQ         found+0(FP), DI
	MOVQ         hits+8(FP), DX
	MOVQ         groups+16(FP), SI
	MOVQ         n+24(FP), CX
	MOVQ         tables+32(FP), R8
	MOVQ         words+40(FP), R9
	MOVQ         next+56(FP), R15
	SUBQ         SI, R15
	MOVQ         R9, BX
	SHLQ         $6, BX
	ADDQ         $128, BX
	MOVL         $0x0f0f0f0f, AX
	VMOVD        AX, X10
	VPBROADCASTD X10, Y10

pair:
	XORL R13, R13
	MOVQ SI, R12
	CMPQ CX, $2
	JLT  begin
	INCQ R13
	ADDQ BX, R12

begin:
	MOVQ  R8, R10
	MOVQ  R9, R11
	VPXOR Y11, Y11, Y11
	VPXOR Y12, Y12, Y12

block:
	MOVL    $BLOCK, AX
	CMPQ    R11, AX
	CMOVQLT R11, AX
	SUBQ    AX, R11
	VPXOR   Y8, Y8, Y8
	VPXOR   Y9, Y9, Y9

word:
	PREFETCHT0 (SI)(R15*1)
	PREFETCHT0 (R12)(R15*1)

	// Bytes of codes, in the lower half / in the upper half:
	VMOVDQU    (SI), Y0      // a0 a1 / a2 a3, each with its eight bytes
	VMOVDQU    32(SI), Y1    // a4 a5 / a6 a7
	VMOVDQU    (R12), Y2     // b0 b1 / b2 b3
	VMOVDQU    32(R12), Y3   // b4 b5 / b6 b7
	VPUNPCKLBW Y1, Y0, Y4    // byte 0 of a0 a4 / a2 a6, byte 1, to byte 7
	VPUNPCKHBW Y1, Y0, Y5    // of a1 a5 / a3 a7
	VPUNPCKLBW Y3, Y2, Y6
	VPUNPCKHBW Y3, Y2, Y7
	VPUNPCKLWD Y5, Y4, Y0    // bytes 0 to 3 of a0 a4 a1 a5 / a2 a6 a3 a7
	VPUNPCKHWD Y5, Y4, Y1    // bytes 4 to 7
	VPUNPCKLWD Y7, Y6, Y2
	VPUNPCKHWD Y7, Y6, Y3
	VPUNPCKLDQ Y2, Y0, Y4    // bytes 0 and 1 of a0 a4 a1 a5 b0 b4 b1 b5 / a2 a6 a3 a7 b2 b6 b3 b7
	VPUNPCKHDQ Y2, Y0, Y5    // bytes 2 and 3
	VPUNPCKLDQ Y3, Y1, Y6
	VPUNPCKHDQ Y3, Y1, Y7
	VPERMQ     $0xD8, Y4, Y4 // byte 0 of all / byte 1
	VPERMQ     $0xD8, Y5, Y5
	VPERMQ     $0xD8, Y6, Y6
	VPERMQ     $0xD8, Y7, Y7
	LOOKUP(0, Y4, Y0, Y1)
	LOOKUP(64, Y5, Y2, Y3)
	LOOKUP(128, Y6, Y0, Y1)
	LOOKUP(192, Y7, Y2, Y3)
	VPADDB     Y5, Y4, Y4
	VPADDB     Y7, Y6, Y6
	VPSRLW     $8, Y4, Y5
	VPSRLW     $8, Y6, Y7
	VPADDW     Y4, Y8, Y8
	VPADDW     Y5, Y9, Y9
	VPADDW     Y6, Y8, Y8
	VPADDW     Y7, Y9, Y9
	ADDQ       $64, SI
	ADDQ       $64, R12
	ADDQ       $256, R10
	DECQ       AX
	JNZ        word

	VPSLLW      $8, Y9, Y0
	VPSUBW      Y0, Y8, Y8
	WIDEN(X8, Y8, X0, Y0) // a0 a1 b0 b1 / a2 a3 b2 b3
	WIDEN(X9, Y9, X1, Y1) // a4 a5 b4 b5 / a6 a7 b6 b7
	VPUNPCKLQDQ Y9, Y8, Y0
	VPUNPCKHQDQ Y9, Y8, Y1
	VPADDD      Y0, Y11, Y11
	VPADDD      Y1, Y12, Y12
	TESTQ       R11, R11
	JNZ         block

	PREFETCHT0 (SI)(R15*1)
	PREFETCHT0 64(SI)(R15*1)
	PREFETCHT0 (R12)(R15*1)
	PREFETCHT0 64(R12)(R15*1)
	ESTIMATE(SI, Y11, R10)
	ESTIMATE(R12, Y12, R11)
	MOVB    R10, (DX)
	MOVB    R11, (DX)(R13*1)
	SHLQ    $5, R13
	VMOVUPS Y11, (DI)
	VMOVUPS Y12, (DI)(R13*1)
	LEAQ    128(R12), SI
	ADDQ    $64, DI
	ADDQ    $2, DX
	SUBQ    $2, CX
	JG      pair
	VZEROUPPER
	RET
