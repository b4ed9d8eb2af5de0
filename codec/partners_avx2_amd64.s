#include "textflag.h"

// The bits of every byte are counted by looking up its two halves with VPSHUFB,
// 32 values at a time, and the positions of those that count are looked up, eight
// values at a time. Vectors are always read whole, of the last 32 values where
// fewer are left of the array, so there must be as many.
// Registers:
//	DI  where the next position goes
//	R8  how many more positions dst has room for
//	R9  the number of values, less 32
//	R10 where the next beginning is
//	R11 where the next end is
//	R12 how many ranges are left, less 1
//	R13 the values
//	R14 how many ranges ahead are fetched, or fewer towards the end
//	R15 the numbers of the bits that are set in each byte
//	BX  the position of the next value
//	CX  how many values of the range are left
//	SI  from where on 32 values are looked at
//	DX  a bit for each that counts of the range
//	Y15 how many bits are set in 0, 1 ... 15, twice
//	Y14 15, Y13 1, Y12 least and Y11 most - least in every byte
//	Y10 the query in every lane of 16 bits
//	Y9  8 in every lane of 32 bits

DATA counts<>+0(SB)/8, $0x0302020102010100
DATA counts<>+8(SB)/8, $0x0403030203020201
GLOBL counts<>(SB), RODATA|NOPTR, $16

#define RANGESAHEAD 12

// COUNT replaces every byte of Y by how many of its bits are set. Clobbers T.
#define COUNT(Y, T) \
	VPAND   Y14, Y, T; \
	VPSRLW  $4, Y, Y;  \
	VPAND   Y14, Y, Y; \
	VPSHUFB T, Y15, T; \
	VPSHUFB Y, Y15, Y; \
	VPADDB  T, Y, Y

// STORE takes the next 8 bits from DX and stores their positions, of which the
// first is in every lane of Y1. Clobbers AX and Y0.
#define STORE \
	MOVBLZX   DX, AX;          \
	SHRL      $8, DX;          \
	VPMOVZXBD (R15)(AX*8), Y0; \
	VPADDD    Y1, Y0, Y0;      \
	VPADDD    Y9, Y1, Y1;      \
	VMOVDQU   Y0, (DI);        \
	POPCNTL   AX, AX;          \
	LEAQ      (DI)(AX*4), DI

// func partnersAVX2(dst *uint32, room int, values *uint16, n int, from, to *uint32, k int, query, least, spread int, numbers *[256]uint64) int
TEXT ·partnersAVX2(SB), NOSPLIT, $0-96
	MOVQ           dst+0(FP), DI
	MOVQ           room+8(FP), R8
	MOVQ           values+16(FP), R13
	MOVQ           n+24(FP), R9
	MOVQ           from+32(FP), R10
	MOVQ           to+40(FP), R11
	MOVQ           k+48(FP), R12
	MOVQ           query+56(FP), AX
	VMOVQ          AX, X10
	VPBROADCASTW   X10, Y10
	MOVQ           least+64(FP), AX
	VMOVQ          AX, X12
	VPBROADCASTB   X12, Y12
	MOVQ           spread+72(FP), AX
	VMOVQ          AX, X11
	VPBROADCASTB   X11, Y11
	MOVL           $1, AX
	VMOVQ          AX, X13
	VPBROADCASTB   X13, Y13
	MOVL           $15, AX
	VMOVQ          AX, X14
	VPBROADCASTB   X14, Y14
	MOVL           $8, AX
	VMOVQ          AX, X9
	VPBROADCASTD   X9, Y9
	VBROADCASTI128 counts<>(SB), Y15
	MOVQ           numbers+80(FP), R15
	SUBQ           $32, R9
	DECQ           R12
	MOVL           $RANGESAHEAD, R14

loop:
	CMPQ       R14, R12
	CMOVQGT    R12, R14
	MOVL       (R10)(R14*4), AX
	PREFETCHT0 (R13)(AX*2)
	PREFETCHT0 64(R13)(AX*2)
	MOVL       (R10), BX
	MOVL       (R11), CX
	ADDQ       $4, R10
	ADDQ       $4, R11
	CMPQ       CX, n+24(FP)
	JHI        bad
	SUBQ       BX, CX
	JCS        bad
	SUBQ       CX, R8
	JLT        bad
	TESTQ      CX, CX
	JZ         next

block:
	MOVQ       R9, SI
	CMPQ       BX, SI
	CMOVQLT    BX, SI
	VPXOR      (R13)(SI*2), Y10, Y0
	VPXOR      32(R13)(SI*2), Y10, Y1
	COUNT(Y0, Y2)
	COUNT(Y1, Y3)
	VPMADDUBSW Y13, Y0, Y0
	VPMADDUBSW Y13, Y1, Y1
	VPACKUSWB  Y1, Y0, Y0
	VPERMQ     $0xd8, Y0, Y0
	VPSUBB     Y12, Y0, Y0
	VPMINUB    Y11, Y0, Y1
	VPCMPEQB   Y1, Y0, Y0
	VPMOVMSKB  Y0, DX

	// Without those before the range and after it.
	MOVQ         BX, AX
	SUBQ         SI, AX
	SHRXL        AX, DX, DX
	MOVL         $32, AX
	CMPQ         CX, AX
	CMOVQLT      CX, AX
	BZHIL        AX, DX, DX
	VMOVD        BX, X1
	VPBROADCASTD X1, Y1

	// Nobody could predict whether any count, and storing none costs less than a
	// wrong guess. The second half is often behind the range.
	STORE
	STORE
	TESTL DX, DX
	JZ    none
	STORE
	STORE

none:
	ADDQ $32, BX
	SUBQ $32, CX
	JGT  block

next:
	DECQ R12
	JGE  loop
	SUBQ dst+0(FP), DI
	SHRQ $2, DI
	MOVQ DI, ret+88(FP)
	VZEROUPPER
	RET

bad:
	MOVQ $-1, ret+88(FP)
	VZEROUPPER
	RET
