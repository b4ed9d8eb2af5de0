#include "textflag.h"

// Kernels that wait for memory rather than for arithmetic: they count word by
// word with POPCNT and serve both vector sets. Nothing branches on a distance:
// every Near is stored, and the count grows by those that are within r.

// How many positions ahead codes are fetched, and that many positions in bytes.
#define AHEAD 24
#define AHEADBYTES (4*AHEAD)

// Registers of the kernels for positions:
//	DI  dst
//	BX  how many Nears of dst count
//	SI  codes
//	R9  how many codes there are
//	R10 where the next position is
//	R11 the end of the positions
//	R12 where there are no further AHEAD positions
//	R8  r+1
//	R13 and up: the query
// AX is the position, DX the distance and then the Near, CX and R15 scratch.
#define START \
	MOVQ dst+0(FP), DI;         \
	MOVQ codes+8(FP), SI;       \
	MOVQ n+16(FP), R9;          \
	MOVQ at+24(FP), R10;        \
	MOVQ k+32(FP), R11;         \
	MOVQ query+40(FP), R13;     \
	MOVQ r+48(FP), R8;          \
	LEAQ (R10)(R11*4), R11;     \
	LEAQ -AHEADBYTES(R11), R12; \
	INCQ R8;                    \
	XORL BX, BX

// FIRST leaves in CX the end of the first AHEAD positions, all of them if there
// are fewer.
#define FIRST \
	LEAQ    AHEADBYTES(R10), CX; \
	CMPQ    R11, CX;             \
	CMOVQCS R11, CX

// KEEP stores the Near of AX and DX. r+1 is not negative, so the carry of the
// unsigned comparison says that the distance is at most r.
#define KEEP \
	CMPQ DX, R8;         \
	SBBQ CX, CX;         \
	SHLQ $32, DX;        \
	ORQ  AX, DX;         \
	MOVQ DX, (DI)(BX*8); \
	SUBQ CX, BX

// func withinAt1POPCNT(dst *Near, codes *uint64, n int, at *uint32, k int, query *uint64, r int) int
TEXT ·withinAt1POPCNT(SB), NOSPLIT, $0-64
	START
	MOVQ (R13), R13

loop:
	CMPQ       R10, R12
	JCC        fetched
	MOVL       AHEADBYTES(R10), AX
	PREFETCHT0 (SI)(AX*8)

fetched:
	MOVL    (R10), AX
	CMPQ    AX, R9
	JCC     bad
	MOVQ    (SI)(AX*8), DX
	XORQ    R13, DX
	POPCNTQ DX, DX
	KEEP
	ADDQ    $4, R10
	CMPQ    R10, R11
	JNE     loop
	MOVQ    BX, ret+56(FP)
	RET

bad:
	MOVQ $-1, ret+56(FP)
	RET

// func withinAt2POPCNT(dst *Near, codes *uint64, n int, at *uint32, k int, query *uint64, r int) int
TEXT ·withinAt2POPCNT(SB), NOSPLIT, $0-64
	START
	MOVQ 8(R13), R14
	MOVQ (R13), R13
	FIRST

first:
	MOVL       (R10), AX
	SHLQ       $4, AX
	PREFETCHT0 (SI)(AX*1)
	ADDQ       $4, R10
	CMPQ       R10, CX
	JNE        first
	MOVQ       at+24(FP), R10

loop:
	CMPQ       R10, R12
	JCC        fetched
	MOVL       AHEADBYTES(R10), AX
	SHLQ       $4, AX
	PREFETCHT0 (SI)(AX*1)

fetched:
	MOVL    (R10), AX
	CMPQ    AX, R9
	JCC     bad
	MOVQ    AX, CX
	SHLQ    $4, CX
	MOVQ    (SI)(CX*1), DX
	MOVQ    8(SI)(CX*1), R15
	XORQ    R13, DX
	XORQ    R14, R15
	POPCNTQ DX, DX
	POPCNTQ R15, R15
	ADDQ    R15, DX
	KEEP
	ADDQ    $4, R10
	CMPQ    R10, R11
	JNE     loop
	MOVQ    BX, ret+56(FP)
	RET

bad:
	MOVQ $-1, ret+56(FP)
	RET

// func withinAtNPOPCNT(dst *Near, codes *uint64, n int, at *uint32, k int, query *uint64, r int, w int) int
//
// R14 is the length of a code in bytes, R13 the end of the query, CX that of
// the code, and R9 runs from -R14 to 0 over the words of both.
TEXT ·withinAtNPOPCNT(SB), NOSPLIT, $0-72
	START
	MOVQ w+56(FP), R14
	SHLQ $3, R14
	ADDQ R14, R13
	FIRST

first:
	MOVL  (R10), AX
	IMULQ R14, AX
	ADDQ  SI, AX
	LEAQ  -8(AX)(R14*1), R9

fetchfirst:
	PREFETCHT0 (AX)
	ADDQ       $64, AX
	CMPQ       AX, R9
	JCS        fetchfirst
	PREFETCHT0 (R9)
	ADDQ       $4, R10
	CMPQ       R10, CX
	JNE        first
	MOVQ       at+24(FP), R10

loop:
	CMPQ  R10, R12
	JCC   fetched
	MOVL  AHEADBYTES(R10), CX
	IMULQ R14, CX
	ADDQ  SI, CX
	LEAQ  -8(CX)(R14*1), R9   // the last word, whose line the loop may miss

fetch:
	PREFETCHT0 (CX)
	ADDQ       $64, CX
	CMPQ       CX, R9
	JCS        fetch
	PREFETCHT0 (R9)

fetched:
	MOVL  (R10), AX
	CMPQ  AX, n+16(FP)
	JCC   bad
	MOVQ  AX, CX
	IMULQ R14, CX
	ADDQ  R14, CX
	ADDQ  SI, CX
	XORL  DX, DX
	MOVQ  R14, R9
	NEGQ  R9

word:
	MOVQ    (R13)(R9*1), R15
	XORQ    (CX)(R9*1), R15
	POPCNTQ R15, R15
	ADDQ    R15, DX
	ADDQ    $8, R9
	JNZ     word
	KEEP
	ADDQ    $4, R10
	CMPQ    R10, R11
	JNE     loop
	MOVQ    BX, ret+64(FP)
	RET

bad:
	MOVQ $-1, ret+64(FP)
	RET

// fetchRanges begins to fetch the first KB of each of k ranges.
//
// func fetchRanges(codes *uint64, from, to *uint32, k int, w int)
TEXT ·fetchRanges(SB), NOSPLIT, $0-40
	MOVQ codes+0(FP), SI
	MOVQ from+8(FP), R10
	MOVQ to+16(FP), R11
	MOVQ k+24(FP), CX
	MOVQ w+32(FP), R14
	SHLQ $3, R14

loop:
	MOVL    (R10), AX
	MOVL    (R11), DX
	IMULQ   R14, AX
	IMULQ   R14, DX
	ADDQ    SI, AX
	LEAQ    -8(SI)(DX*1), DX
	LEAQ    1024(AX), R9
	CMPQ    R9, DX
	CMOVQCS R9, DX

line:
	PREFETCHT0 (AX)
	ADDQ       $64, AX
	CMPQ       AX, DX
	JCS        line
	PREFETCHT0 (DX)
	ADDQ       $4, R10
	ADDQ       $4, R11
	DECQ       CX
	JNZ        loop
	RET
