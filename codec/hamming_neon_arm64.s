#include "textflag.h"

// Kernels with 128-bit vectors. VCNT counts the bits of every byte and VADDP
// adds neighbouring bytes of two vectors, so that the sums of a tree of VADDP
// are the distances of many codes, a byte each, in the order of the codes.
// Registers of all kernels:
//	R0 where the next Near goes
//	R1 the next code
//	R2 how many codes are left
//	R3 the query
//	R4 r
//	R5 the position of the code that R1 points to
//	R6 to R9 scratch

// KEEPONE appends the Near of the code at position POS at distance R7, if that
// is at most r. There must be room for it whatever its distance. Clobbers R6.
#define KEEPONE(POS) \
	ORR  R7<<32, POS, R6; \
	MOVD R6, (R0);        \
	CMP  R4, R7;          \
	CSET LE, R6;          \
	ADD  R6<<3, R0, R0

// KEEPSOME appends the Nears of codes from position R5 on, one for each byte of
// R6 that is not 0; their distances are the bytes of R7, and R10 is 1 in every
// byte. It ends at label done, which is to follow. Clobbers R6, R8 and R9.
#define KEEPSOME(loop, done) \
	AND    R10, R6, R6;    \
	loop:                  \
	CBZ    R6, done;       \
	RBIT   R6, R8;         \
	CLZ    R8, R8;         \
	LSR    R8, R7, R9;     \
	AND    $255, R9, R9;   \
	ADD    R8>>3, R5, R8;  \
	ORR    R9<<32, R8, R8; \
	MOVD.P R8, 8(R0);      \
	SUB    $1, R6, R8;     \
	AND    R8, R6, R6;     \
	JMP    loop

#define START \
	MOVD dst+0(FP), R0;           \
	MOVD codes+8(FP), R1;         \
	MOVD n+16(FP), R2;            \
	MOVD query+24(FP), R3;        \
	MOVD r+32(FP), R4;            \
	MOVD base+40(FP), R5;         \
	MOVD $0x0101010101010101, R10

#define RETURN(ret) \
	MOVD dst+0(FP), R6; \
	SUB  R6, R0, R0;    \
	LSR  $3, R0, R0;    \
	MOVD R0, ret;       \
	RET

// COUNT8 leaves in V0 how many bits of the next 128 bytes of codes differ from
// those of V31, a byte for each 8 bytes. Clobbers V1 to V7.
#define COUNT8 \
	VLD1.P 64(R1), [V0.B16, V1.B16, V2.B16, V3.B16]; \
	VLD1.P 64(R1), [V4.B16, V5.B16, V6.B16, V7.B16]; \
	VEOR   V31.B16, V0.B16, V0.B16;                  \
	VEOR   V31.B16, V1.B16, V1.B16;                  \
	VEOR   V31.B16, V2.B16, V2.B16;                  \
	VEOR   V31.B16, V3.B16, V3.B16;                  \
	VEOR   V31.B16, V4.B16, V4.B16;                  \
	VEOR   V31.B16, V5.B16, V5.B16;                  \
	VEOR   V31.B16, V6.B16, V6.B16;                  \
	VEOR   V31.B16, V7.B16, V7.B16;                  \
	VCNT   V0.B16, V0.B16;                           \
	VCNT   V1.B16, V1.B16;                           \
	VCNT   V2.B16, V2.B16;                           \
	VCNT   V3.B16, V3.B16;                           \
	VCNT   V4.B16, V4.B16;                           \
	VCNT   V5.B16, V5.B16;                           \
	VCNT   V6.B16, V6.B16;                           \
	VCNT   V7.B16, V7.B16;                           \
	VADDP  V1.B16, V0.B16, V0.B16;                   \
	VADDP  V3.B16, V2.B16, V1.B16;                   \
	VADDP  V5.B16, V4.B16, V2.B16;                   \
	VADDP  V7.B16, V6.B16, V3.B16;                   \
	VADDP  V1.B16, V0.B16, V0.B16;                   \
	VADDP  V3.B16, V2.B16, V1.B16;                   \
	VADDP  V1.B16, V0.B16, V0.B16

// func within1NEON(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64) int
TEXT ·within1NEON(SB), NOSPLIT, $0-56
	START
	MOVD (R3), R3
	VDUP R3, V31.D2
	VDUP R4, V30.B16
	SUBS $16, R2
	BLT  tail

loop16:
	COUNT8
	VUMIN V30.B16, V0.B16, V1.B16
	VCMEQ V0.B16, V1.B16, V1.B16
	VMOV  V1.D[0], R6
	VMOV  V1.D[1], R11
	ORR   R6, R11, R7
	CBNZ  R7, keep16
	ADD   $16, R5

next16:
	SUBS $16, R2
	BGE  loop16

tail:
	ADDS $16, R2
	BEQ  done

loop1:
	FMOVD.P 8(R1), F0
	VEOR    V31.B8, V0.B8, V0.B8
	VCNT    V0.B8, V0.B8
	VUADDLV V0.B8, V0
	FMOVS   F0, R7
	KEEPONE(R5)
	ADD     $1, R5
	SUBS    $1, R2
	BNE     loop1

done:
	RETURN(ret+48(FP))

keep16:
	VMOV V0.D[0], R7
	KEEPSOME(low, lowdone)

lowdone:
	ADD  $8, R5
	MOVD R11, R6
	VMOV V0.D[1], R7
	KEEPSOME(high, highdone)

highdone:
	ADD $8, R5
	JMP next16

// func within2NEON(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64) int
TEXT ·within2NEON(SB), NOSPLIT, $0-56
	START
	VLD1 (R3), [V31.B16]
	VDUP R4, V30.B16
	SUBS $8, R2
	BLT  tail

loop8:
	COUNT8
	VADDP V0.B16, V0.B16, V0.B16
	VUMIN V30.B16, V0.B16, V1.B16
	VCMEQ V0.B16, V1.B16, V1.B16
	VMOV  V1.D[0], R6
	CBNZ  R6, keep8

next8:
	ADD  $8, R5
	SUBS $8, R2
	BGE  loop8

tail:
	ADDS $8, R2
	BEQ  done

loop1:
	VLD1.P  16(R1), [V0.B16]
	VEOR    V31.B16, V0.B16, V0.B16
	VCNT    V0.B16, V0.B16
	VUADDLV V0.B16, V0
	FMOVS   F0, R7
	KEEPONE(R5)
	ADD     $1, R5
	SUBS    $1, R2
	BNE     loop1

done:
	RETURN(ret+48(FP))

keep8:
	VMOV V0.D[0], R7
	KEEPSOME(some, somedone)

somedone:
	JMP next8

// ONE leaves in R7 the distance of the code of W words that R1 points to, and
// moves R1 to the next. A byte of V4 and V5 adds up to 8 for each of at most 16
// vectors of them. Clobbers R6, R8 and V0 to V5.
#define ONE(W, loop, rest, odd, sum) \
	MOVD    R3, R8;                   \
	VMOVI   $0, V4.B16;               \
	VMOVI   $0, V5.B16;               \
	SUBS    $4, W, R6;                \
	BLT     rest;                     \
	loop:                             \
	VLD1.P  32(R1), [V0.B16, V1.B16]; \
	VLD1.P  32(R8), [V2.B16, V3.B16]; \
	VEOR    V0.B16, V2.B16, V0.B16;   \
	VEOR    V1.B16, V3.B16, V1.B16;   \
	VCNT    V0.B16, V0.B16;           \
	VCNT    V1.B16, V1.B16;           \
	VADD    V0.B16, V4.B16, V4.B16;   \
	VADD    V1.B16, V5.B16, V5.B16;   \
	SUBS    $4, R6;                   \
	BGE     loop;                     \
	rest:                             \
	TBZ     $1, W, odd;               \
	VLD1.P  16(R1), [V0.B16];         \
	VLD1.P  16(R8), [V2.B16];         \
	VEOR    V0.B16, V2.B16, V0.B16;   \
	VCNT    V0.B16, V0.B16;           \
	VADD    V0.B16, V4.B16, V4.B16;   \
	odd:                              \
	TBZ     $0, W, sum;               \
	FMOVD.P 8(R1), F0;                \
	FMOVD   (R8), F2;                 \
	VEOR    V0.B8, V2.B8, V0.B8;      \
	VCNT    V0.B8, V0.B8;             \
	VADD    V0.B16, V5.B16, V5.B16;   \
	sum:                              \
	VUADDLV V4.B16, V4;               \
	VUADDLV V5.B16, V5;               \
	FMOVS   F4, R7;                   \
	FMOVS   F5, R6;                   \
	ADD     R6, R7

// func withinNNEON(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64, w int) int
TEXT ·withinNNEON(SB), NOSPLIT, $0-64
	START
	MOVD w+48(FP), R9

loop1:
	ONE(R9, loop, rest, odd, sum)
	KEEPONE(R5)
	ADD  $1, R5
	SUBS $1, R2
	BNE  loop1
	RETURN(ret+56(FP))

	// How many positions ahead codes are fetched.
#define AHEAD 24

// func withinAtNEON(dst *Near, codes *uint64, n int, at *uint32, k int, query *uint64, r int, w int) int
//
// R10 is the array of codes, R11 the next position, R12 how many are left, R13
// the length of a code in bytes, R14 the position at hand and R15 how many codes
// there are.
TEXT ·withinAtNEON(SB), NOSPLIT, $0-72
	MOVD dst+0(FP), R0
	MOVD codes+8(FP), R10
	MOVD n+16(FP), R15
	MOVD at+24(FP), R11
	MOVD k+32(FP), R12
	MOVD query+40(FP), R3
	MOVD r+48(FP), R4
	MOVD w+56(FP), R9
	LSL  $3, R9, R13

loop1:
	CMP   $AHEAD, R12
	BLE   fetched
	MOVWU (4*AHEAD)(R11), R6
	MUL   R13, R6
	ADD   R10, R6
	ADD   R13, R6, R7
	SUB   $8, R7

fetch:
	PRFM (R6), PLDL1KEEP
	ADD  $64, R6
	CMP  R7, R6
	BLO  fetch
	PRFM (R7), PLDL1KEEP

fetched:
	MOVWU.P 4(R11), R14
	CMP     R15, R14
	BHS     bad
	MUL     R13, R14, R1
	ADD     R10, R1
	ONE(R9, loop, rest, odd, sum)
	KEEPONE(R14)
	SUBS    $1, R12
	BNE     loop1
	RETURN(ret+64(FP))

bad:
	MOVD $-1, R0
	MOVD R0, ret+64(FP)
	RET

// fetchRanges begins to fetch the first KB of each of k ranges.
//
// func fetchRanges(codes *uint64, from, to *uint32, k int, w int)
TEXT ·fetchRanges(SB), NOSPLIT, $0-40
	MOVD codes+0(FP), R0
	MOVD from+8(FP), R1
	MOVD to+16(FP), R2
	MOVD k+24(FP), R3
	MOVD w+32(FP), R4
	LSL  $3, R4, R4

loop:
	MOVWU.P 4(R1), R5
	MOVWU.P 4(R2), R6
	MADD    R4, R0, R5, R5
	MADD    R4, R0, R6, R6
	SUB     $8, R6
	ADD     $1024, R5, R7
	CMP     R7, R6
	CSEL    HI, R7, R6, R6

line:
	PRFM (R5), PLDL1KEEP
	ADD  $64, R5
	CMP  R6, R5
	BLO  line
	PRFM (R6), PLDL1KEEP
	SUBS $1, R3
	BNE  loop
	RET
