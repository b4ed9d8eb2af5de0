#include "textflag.h"

// Kernels with 256-bit vectors: the bits of every byte are counted by looking up
// its two halves with VPSHUFB, and VPSADBW adds the bytes of every word.
// Registers of all kernels:
//	DI      where the next Near goes
//	BX      the position of the code that SI points to
//	SI      the next code
//	CX      how many codes are left
//	Y15     how many bits are set in 0, 1 ... 15, twice
//	Y14     15 in every byte
//	Y13     0
//	Y12     r+1 in every 64-bit lane
//	Y11     0, 1, 2, 3
//	Y10     the query
//	R15     compress
// The loops test once for several vectors whether there is anything to keep;
// where there is, what is kept is written without branches: it is moved to the
// low lanes of a register, the whole register is stored, and DI moves on by as
// many as count. What is left in the end goes code by code, with POPCNT.

DATA counts<>+0(SB)/8, $0x0302020102010100
DATA counts<>+8(SB)/8, $0x0403030203020201
GLOBL counts<>(SB), RODATA|NOPTR, $16

DATA lanes<>+0(SB)/8, $0
DATA lanes<>+8(SB)/8, $1
DATA lanes<>+16(SB)/8, $2
DATA lanes<>+24(SB)/8, $3
GLOBL lanes<>(SB), RODATA|NOPTR, $32

// For each mask of four 64-bit lanes, the VPERMD indices, a byte each, that move
// the lanes of the mask to the low end.
DATA compress<>+0(SB)/8, $0x0000000000000000
DATA compress<>+8(SB)/8, $0x0000000000000100
DATA compress<>+16(SB)/8, $0x0000000000000302
DATA compress<>+24(SB)/8, $0x0000000003020100
DATA compress<>+32(SB)/8, $0x0000000000000504
DATA compress<>+40(SB)/8, $0x0000000005040100
DATA compress<>+48(SB)/8, $0x0000000005040302
DATA compress<>+56(SB)/8, $0x0000050403020100
DATA compress<>+64(SB)/8, $0x0000000000000706
DATA compress<>+72(SB)/8, $0x0000000007060100
DATA compress<>+80(SB)/8, $0x0000000007060302
DATA compress<>+88(SB)/8, $0x0000070603020100
DATA compress<>+96(SB)/8, $0x0000000007060504
DATA compress<>+104(SB)/8, $0x0000070605040100
DATA compress<>+112(SB)/8, $0x0000070605040302
DATA compress<>+120(SB)/8, $0x0706050403020100
GLOBL compress<>(SB), RODATA|NOPTR, $128

// Masks for VPMASKMOVQ: what is 8*n bytes before the zeros selects the first n
// of 8 words.
DATA first<>+0(SB)/8, $-1
DATA first<>+8(SB)/8, $-1
DATA first<>+16(SB)/8, $-1
DATA first<>+24(SB)/8, $-1
DATA first<>+32(SB)/8, $-1
DATA first<>+40(SB)/8, $-1
DATA first<>+48(SB)/8, $-1
DATA first<>+56(SB)/8, $-1
DATA first<>+64(SB)/8, $0
DATA first<>+72(SB)/8, $0
DATA first<>+80(SB)/8, $0
DATA first<>+88(SB)/8, $0
DATA first<>+96(SB)/8, $0
DATA first<>+104(SB)/8, $0
DATA first<>+112(SB)/8, $0
DATA first<>+120(SB)/8, $0
GLOBL first<>(SB), RODATA|NOPTR, $128

// COUNT replaces every byte of Y by how many of its bits are set. Clobbers T.
#define COUNT(Y, T) \
	VPAND   Y14, Y, T; \
	VPSRLW  $4, Y, Y;  \
	VPAND   Y14, Y, Y; \
	VPSHUFB T, Y15, T; \
	VPSHUFB Y, Y15, Y; \
	VPADDB  T, Y, Y

// KEEP appends the Nears of those of the codes from position BX+OFF on whose
// distances, the lanes of D, are less than the lanes of LIMIT. dst must have room
// for 4. Clobbers AX, Y8 and Y9.
#define KEEP(D, LIMIT, OFF) \
	LEAQ         OFF(BX), AX;     \
	VMOVQ        AX, X8;          \
	VPBROADCASTQ X8, Y8;          \
	VPADDQ       Y11, Y8, Y8;     \
	VPCMPGTQ     D, LIMIT, Y9;    \
	VMOVMSKPD    Y9, AX;          \
	VPMOVZXBD    (R15)(AX*8), Y9; \
	POPCNTL      AX, AX;          \
	VPSLLQ       $32, D, D;       \
	VPADDQ       Y8, D, D;        \
	VPERMD       D, Y9, D;        \
	VMOVDQU      D, (DI);         \
	LEAQ         (DI)(AX*8), DI

// KEEPONE appends the Near of the code at position BX at distance AX, if that is
// less than DX, which is r+1. There must be room for it whatever its distance.
// Clobbers AX and R9.
#define KEEPONE \
	MOVQ AX, R9;        \
	SHLQ $32, R9;       \
	ORQ  BX, R9;        \
	MOVQ R9, (DI);      \
	CMPQ AX, DX;        \
	SBBQ AX, AX;        \
	NEGQ AX;            \
	LEAQ (DI)(AX*8), DI

// SUM2 adds the bytes of words 2i and 2i+1 of A and B: four codes of two words,
// in the order 0 2 1 3, in A. Clobbers T.
#define SUM2(A, B, T) \
	VPUNPCKHQDQ B, A, T; \
	VPUNPCKLQDQ B, A, A; \
	VPADDB      T, A, A

// CONSTANTS sets the registers that are the same in all calls. Clobbers AX.
#define CONSTANTS \
	VBROADCASTI128 counts<>(SB), Y15;  \
	MOVL           $0x0f0f0f0f, AX;    \
	VMOVQ          AX, X14;            \
	VPBROADCASTD   X14, Y14;           \
	VPXOR          Y13, Y13, Y13;      \
	VMOVDQU        lanes<>(SB), Y11;   \
	LEAQ           compress<>(SB), R15

// START leaves a pointer to the query in R10 and r+1 in DX.
#define START \
	MOVQ         dst+0(FP), DI;     \
	MOVQ         codes+8(FP), SI;   \
	MOVQ         n+16(FP), CX;      \
	MOVQ         query+24(FP), R10; \
	MOVQ         r+32(FP), DX;      \
	INCQ         DX;                \
	VMOVQ        DX, X12;           \
	VPBROADCASTQ X12, Y12;          \
	MOVQ         base+40(FP), BX;   \
	CONSTANTS

// RETURN returns the number of Nears that were kept.
#define RETURN(ret) \
	SUBQ dst+0(FP), DI; \
	SHRQ $3, DI;        \
	MOVQ DI, ret;       \
	VZEROUPPER;         \
	RET

// FOUR leaves in the lanes of Y0 the distances of four codes of any length, which
// R10, R11, R12 and R13 point to. SI points to the query, R8 is the length in
// bytes of its vectors but the last, which has 1 to 4 words, is in Y10, and whose
// words are those of mask Y7. A byte adds up to 8 for each of at most 16 vectors.
// Masked loads alone do not make every machine fetch ahead, so where there are no
// others FOUR does. Clobbers Y1 to Y6 and R9.
#define FOUR(loop, sum) \
	VPMASKMOVQ (R10)(R8*1), Y7, Y0; \
	VPMASKMOVQ (R11)(R8*1), Y7, Y1; \
	VPMASKMOVQ (R12)(R8*1), Y7, Y2; \
	VPMASKMOVQ (R13)(R8*1), Y7, Y3; \
	VPXOR      Y10, Y0, Y0;         \
	VPXOR      Y10, Y1, Y1;         \
	VPXOR      Y10, Y2, Y2;         \
	VPXOR      Y10, Y3, Y3;         \
	COUNT(Y0, Y4);                  \
	COUNT(Y1, Y5);                  \
	COUNT(Y2, Y4);                  \
	COUNT(Y3, Y5);                  \
	XORL       R9, R9;              \
	CMPQ       R9, R8;              \
	JNE        loop;                \
	PREFETCHT0 512(R10);            \
	PREFETCHT0 512(R12);            \
	JMP        sum;                 \
	loop:                            \
	VMOVDQU     (SI)(R9*1), Y6;      \
	VPXOR       (R10)(R9*1), Y6, Y4; \
	COUNT(Y4, Y5);                   \
	VPADDB      Y4, Y0, Y0;          \
	VPXOR       (R11)(R9*1), Y6, Y4; \
	COUNT(Y4, Y5);                   \
	VPADDB      Y4, Y1, Y1;          \
	VPXOR       (R12)(R9*1), Y6, Y4; \
	COUNT(Y4, Y5);                   \
	VPADDB      Y4, Y2, Y2;          \
	VPXOR       (R13)(R9*1), Y6, Y4; \
	COUNT(Y4, Y5);                   \
	VPADDB      Y4, Y3, Y3;          \
	ADDQ        $32, R9;             \
	CMPQ        R9, R8;              \
	JNE         loop;                \
	sum:                             \
	VPSADBW     Y13, Y0, Y0;         \
	VPSADBW     Y13, Y1, Y1;         \
	VPSADBW     Y13, Y2, Y2;         \
	VPSADBW     Y13, Y3, Y3;         \
	VPUNPCKHQDQ Y1, Y0, Y4;          \
	VPUNPCKLQDQ Y1, Y0, Y0;          \
	VPADDQ      Y4, Y0, Y0;          \
	VPUNPCKHQDQ Y3, Y2, Y4;          \
	VPUNPCKLQDQ Y3, Y2, Y2;          \
	VPADDQ      Y4, Y2, Y2;          \
	VPERM2I128  $0x31, Y2, Y0, Y4;   \
	VINSERTI128 $1, X2, Y0, Y0;      \
	VPADDQ      Y4, Y0, Y0

// FOURSTART prepares FOUR for codes that follow each other: SI points to the
// first of them, R10 to the query, and R14 is the number of words of each.
// R14 becomes the length of a code in bytes. Clobbers AX and R9.
#define FOURSTART \
	LEAQ       -1(R14), R8;          \
	ANDQ       $-4, R8;              \
	MOVQ       R8, AX;               \
	SUBQ       R14, AX;              \
	LEAQ       first<>(SB), R9;      \
	VMOVDQU    64(R9)(AX*8), Y7;     \
	SHLQ       $3, R8;               \
	SHLQ       $3, R14;              \
	VPMASKMOVQ (R10)(R8*1), Y7, Y10; \
	LEAQ       (SI)(R14*1), R11;     \
	LEAQ       (SI)(R14*2), R12;     \
	LEAQ       (R11)(R14*2), R13;    \
	XCHGQ      R10, SI

// FOURNEXT moves on to the next four codes.
#define FOURNEXT \
	LEAQ (R10)(R14*4), R10; \
	LEAQ (R11)(R14*4), R11; \
	LEAQ (R12)(R14*4), R12; \
	LEAQ (R13)(R14*4), R13

// ONE leaves in AX the distance of the one code that R10 points to, of length
// R14, and moves R10 to the next. Clobbers R9 and R11.
#define ONE(word) \
	XORL    AX, AX;           \
	XORL    R9, R9;           \
	word:                     \
	MOVQ    (R10)(R9*1), R11; \
	XORQ    (SI)(R9*1), R11;  \
	POPCNTQ R11, R11;         \
	ADDQ    R11, AX;          \
	ADDQ    $8, R9;           \
	CMPQ    R9, R14;          \
	JNE     word;             \
	ADDQ    R14, R10

// func within1AVX2(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64) int
TEXT ·within1AVX2(SB), NOSPLIT, $0-56
	START
	VPBROADCASTQ (R10), Y10
	SUBQ         $16, CX
	JLT          tail
	PCALIGN      $32

loop16:
	VPXOR    (SI), Y10, Y0
	VPXOR    32(SI), Y10, Y1
	VPXOR    64(SI), Y10, Y2
	VPXOR    96(SI), Y10, Y3
	COUNT(Y0, Y4)
	COUNT(Y1, Y5)
	COUNT(Y2, Y6)
	COUNT(Y3, Y7)
	VPSADBW  Y13, Y0, Y0
	VPSADBW  Y13, Y1, Y1
	VPSADBW  Y13, Y2, Y2
	VPSADBW  Y13, Y3, Y3
	VPMINUD  Y0, Y1, Y4
	VPMINUD  Y2, Y3, Y5
	VPMINUD  Y4, Y5, Y4
	VPCMPGTD Y4, Y12, Y4
	VPTEST   Y4, Y4
	JNZ      keep16

next16:
	ADDQ $128, SI
	ADDQ $16, BX
	SUBQ $16, CX
	JGE  loop16

tail:
	ADDQ $12, CX
	JLT  last

loop4:
	VPXOR    (SI), Y10, Y0
	COUNT(Y0, Y4)
	VPSADBW  Y13, Y0, Y0
	VPCMPGTD Y0, Y12, Y4
	VPTEST   Y4, Y4
	JNZ      keep4

next4:
	ADDQ $32, SI
	ADDQ $4, BX
	SUBQ $4, CX
	JGE  loop4

last:
	ADDQ  $4, CX
	JZ    done
	VMOVQ X10, R10

loop1:
	MOVQ    (SI), AX
	XORQ    R10, AX
	POPCNTQ AX, AX
	KEEPONE
	ADDQ    $8, SI
	INCQ    BX
	DECQ    CX
	JNZ     loop1

done:
	RETURN(ret+48(FP))

keep16:
	KEEP(Y0, Y12, 0)
	KEEP(Y1, Y12, 4)
	KEEP(Y2, Y12, 8)
	KEEP(Y3, Y12, 12)
	JMP next16

keep4:
	KEEP(Y0, Y12, 0)
	JMP next4

// func within2AVX2(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64) int
TEXT ·within2AVX2(SB), NOSPLIT, $0-56
	START
	VBROADCASTI128 (R10), Y10
	SUBQ           $8, CX
	JLT            tail
	PCALIGN        $32

loop8:
	VPXOR    (SI), Y10, Y0
	VPXOR    32(SI), Y10, Y1
	VPXOR    64(SI), Y10, Y2
	VPXOR    96(SI), Y10, Y3
	COUNT(Y0, Y4)
	COUNT(Y1, Y5)
	COUNT(Y2, Y6)
	COUNT(Y3, Y7)
	SUM2(Y0, Y1, Y4)
	SUM2(Y2, Y3, Y5)
	VPSADBW  Y13, Y0, Y0
	VPSADBW  Y13, Y2, Y2
	VPMINUD  Y0, Y2, Y4
	VPCMPGTD Y4, Y12, Y4
	VPTEST   Y4, Y4
	JNZ      keep8

next8:
	ADDQ $128, SI
	ADDQ $8, BX
	SUBQ $8, CX
	JGE  loop8

tail:
	ADDQ $8, CX
	JZ   done
	MOVQ (R10), R11
	MOVQ 8(R10), R12

loop1:
	MOVQ    (SI), AX
	MOVQ    8(SI), R9
	XORQ    R11, AX
	XORQ    R12, R9
	POPCNTQ AX, AX
	POPCNTQ R9, R9
	ADDQ    R9, AX
	KEEPONE
	ADDQ    $16, SI
	INCQ    BX
	DECQ    CX
	JNZ     loop1

done:
	RETURN(ret+48(FP))

keep8:
	VPERMQ $0xd8, Y0, Y0
	VPERMQ $0xd8, Y2, Y2
	KEEP(Y0, Y12, 0)
	KEEP(Y2, Y12, 4)
	JMP    next8

// func within4AVX2(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64) int
TEXT ·within4AVX2(SB), NOSPLIT, $0-56
	START
	VMOVDQU (R10), Y10
	SUBQ    $4, CX
	JLT     tail
	PCALIGN $32

loop4:
	VPXOR       (SI), Y10, Y0
	VPXOR       32(SI), Y10, Y1
	VPXOR       64(SI), Y10, Y2
	VPXOR       96(SI), Y10, Y3
	COUNT(Y0, Y4)
	COUNT(Y1, Y5)
	COUNT(Y2, Y6)
	COUNT(Y3, Y7)
	SUM2(Y0, Y1, Y4)
	SUM2(Y2, Y3, Y5)
	VPERM2I128  $0x31, Y2, Y0, Y4
	VINSERTI128 $1, X2, Y0, Y0
	VPADDB      Y4, Y0, Y0
	VPSADBW     Y13, Y0, Y0
	VPCMPGTD    Y0, Y12, Y4
	VPTEST      Y4, Y4
	JNZ         keep4

next4:
	ADDQ $128, SI
	ADDQ $4, BX
	SUBQ $4, CX
	JGE  loop4

tail:
	ADDQ  $4, CX
	JZ    done
	MOVL  $32, R14
	XCHGQ SI, R10

loop1:
	ONE(word)
	KEEPONE
	INCQ BX
	DECQ CX
	JNZ  loop1

done:
	RETURN(ret+48(FP))

keep4:
	KEEP(Y0, Y12, 0)
	JMP next4

// func withinNAVX2(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64, w int) int
TEXT ·withinNAVX2(SB), NOSPLIT, $0-64
	START
	MOVQ w+48(FP), R14
	FOURSTART
	SUBQ $4, CX
	JLT  tail

loop4:
	FOUR(vector, sum)
	VPCMPGTD Y0, Y12, Y1
	VPTEST   Y1, Y1
	JNZ      keep4

next4:
	FOURNEXT
	ADDQ $4, BX
	SUBQ $4, CX
	JGE  loop4

tail:
	ADDQ $4, CX
	JZ   done

loop1:
	ONE(word)
	KEEPONE
	INCQ BX
	DECQ CX
	JNZ  loop1

done:
	RETURN(ret+56(FP))

keep4:
	KEEP(Y0, Y12, 0)
	JMP next4

// func withinRanges1AVX2(dst *Near, room int, codes *uint64, n int, from, to *uint32, k int, query *uint64, r int) int
//
// The range at hand is in the registers of the other kernels: SI points to its
// next code, BX is that code's position and CX the number of codes that are left
// of it. Further:
//	R8  how many more codes dst has room for
//	R9  the zeros of first
//	R10 where the next beginning is
//	R11 where the next end is
//	R12 how many ranges are left, less 1
//	R13 the array of codes
//	R14 how many ranges ahead are fetched, fewer towards the end
TEXT ·withinRanges1AVX2(SB), NOSPLIT, $0-80
	MOVQ         dst+0(FP), DI
	MOVQ         room+8(FP), R8
	MOVQ         codes+16(FP), R13
	MOVQ         from+32(FP), R10
	MOVQ         to+40(FP), R11
	MOVQ         k+48(FP), R12
	MOVQ         query+56(FP), DX
	VPBROADCASTQ (DX), Y10
	MOVQ         r+64(FP), DX
	INCQ         DX
	VMOVQ        DX, X12
	VPBROADCASTQ X12, Y12
	CONSTANTS
	LEAQ         first<>+64(SB), R9
	DECQ         R12
	MOVL         $12, R14

loop:
	CMPQ       R14, R12
	CMOVQGT    R12, R14
	MOVL       (R10)(R14*4), AX
	MOVL       (R11)(R14*4), DX
	PREFETCHT0 (R13)(AX*8)
	PREFETCHT0 64(R13)(AX*8)
	PREFETCHT0 -8(R13)(DX*8)
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
	LEAQ       (R13)(BX*8), SI

	// Lanes of no code are less than no limit.
block:
	MOVL       $8, AX
	CMPQ       CX, AX
	CMOVQLT    CX, AX
	NEGQ       AX
	VMOVDQU    (R9)(AX*8), Y2
	VMOVDQU    32(R9)(AX*8), Y3
	VPMASKMOVQ (SI), Y2, Y0
	VPMASKMOVQ 32(SI), Y3, Y1
	VPAND      Y12, Y2, Y2
	VPAND      Y12, Y3, Y3
	VPXOR      Y10, Y0, Y0
	VPXOR      Y10, Y1, Y1
	COUNT(Y0, Y4)
	COUNT(Y1, Y5)
	VPSADBW    Y13, Y0, Y0
	VPSADBW    Y13, Y1, Y1
	VPCMPGTD   Y0, Y2, Y4
	VPCMPGTD   Y1, Y3, Y5
	VPOR       Y4, Y5, Y4
	VPTEST     Y4, Y4
	JNZ        keep

next:
	ADDQ $64, SI
	ADDQ $8, BX
	SUBQ $8, CX
	JGT  block
	DECQ R12
	JGE  loop
	RETURN(ret+72(FP))

keep:
	KEEP(Y0, Y2, 0)
	KEEP(Y1, Y3, 4)
	JMP next

bad:
	MOVQ $-1, ret+72(FP)
	VZEROUPPER
	RET

// func distancesNAVX2(dst *uint16, codes *uint64, n int, query *uint64, w int)
TEXT ·distancesNAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ codes+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ query+24(FP), R10
	MOVQ w+32(FP), R14
	CONSTANTS
	FOURSTART
	SUBQ $4, CX
	JLT  tail

loop4:
	FOUR(vector, sum)
	VEXTRACTI128 $1, Y0, X1
	VPACKUSDW    X1, X0, X0
	VPACKUSDW    X0, X0, X0
	VMOVQ        X0, (DI)
	FOURNEXT
	ADDQ         $8, DI
	SUBQ         $4, CX
	JGE          loop4

tail:
	ADDQ $4, CX
	JZ   done

loop1:
	ONE(word)
	MOVW AX, (DI)
	ADDQ $2, DI
	DECQ CX
	JNZ  loop1

done:
	VZEROUPPER
	RET
