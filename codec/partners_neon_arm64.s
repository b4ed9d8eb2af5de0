#include "textflag.h"

// VCNT counts the bits of every byte and VADDP adds the two bytes of every value,
// so that 32 values become 32 bytes in their order. Vectors are always read whole,
// of the last 32 values where fewer are left of the array, so there must be as
// many.
// Registers:
//	R0  where the next position goes
//	R1  how many more positions dst has room for
//	R2  the values
//	R3  the number of values
//	R4  where the next beginning is
//	R5  where the next end is
//	R6  how many ranges are left, less 1
//	R7  the number of values, less 32
//	R8  the position of the next value
//	R9  how many values of the range are left
//	R10 from where on 32 values are looked at
//	R11 a bit for each of them that counts
//	R12 to R14 scratch
//	V31 the query in every lane of 16 bits
//	V30 least and V29 most - least in every byte
//	V28 1, 2, 4 ... 128 in the bytes of each half

// How many ranges ahead values are fetched.
#define RANGESAHEAD 12

// func partnersNEON(dst *uint32, room int, values *uint16, n int, from, to *uint32, k int, query, least, spread int) int
TEXT ·partnersNEON(SB), NOSPLIT, $0-88
	MOVD dst+0(FP), R0
	MOVD room+8(FP), R1
	MOVD values+16(FP), R2
	MOVD n+24(FP), R3
	MOVD from+32(FP), R4
	MOVD to+40(FP), R5
	MOVD k+48(FP), R6
	MOVD query+56(FP), R12
	VDUP R12, V31.H8
	MOVD least+64(FP), R12
	VDUP R12, V30.B16
	MOVD spread+72(FP), R12
	VDUP R12, V29.B16
	MOVD $0x8040201008040201, R12
	VDUP R12, V28.D2
	SUB  $32, R3, R7
	SUB  $1, R6

loop:
	MOVD    $RANGESAHEAD, R12
	CMP     R12, R6
	CSEL    LT, R6, R12, R12
	MOVWU   (R4)(R12<<2), R12
	ADD     R12<<1, R2, R12
	PRFM    (R12), PLDL1KEEP
	PRFM    64(R12), PLDL1KEEP
	MOVWU.P 4(R4), R8
	MOVWU.P 4(R5), R9
	CMP     R3, R9
	BHI     bad
	SUBS    R8, R9, R9
	BLO     bad
	SUBS    R9, R1, R1
	BLT     bad
	CBZ     R9, next

block:
	CMP   R7, R8
	CSEL  LT, R8, R7, R10
	ADD   R10<<1, R2, R12
	VLD1  (R12), [V0.B16, V1.B16, V2.B16, V3.B16]
	VEOR  V31.B16, V0.B16, V0.B16
	VEOR  V31.B16, V1.B16, V1.B16
	VEOR  V31.B16, V2.B16, V2.B16
	VEOR  V31.B16, V3.B16, V3.B16
	VCNT  V0.B16, V0.B16
	VCNT  V1.B16, V1.B16
	VCNT  V2.B16, V2.B16
	VCNT  V3.B16, V3.B16
	VADDP V1.B16, V0.B16, V0.B16
	VADDP V3.B16, V2.B16, V1.B16
	VSUB  V30.B16, V0.B16, V0.B16
	VSUB  V30.B16, V1.B16, V1.B16
	VUMIN V29.B16, V0.B16, V2.B16
	VUMIN V29.B16, V1.B16, V3.B16
	VCMEQ V0.B16, V2.B16, V0.B16
	VCMEQ V1.B16, V3.B16, V1.B16

	// The eight bits that follow each other add up to a byte.
	VAND  V28.B16, V0.B16, V0.B16
	VAND  V28.B16, V1.B16, V1.B16
	VADDP V1.B16, V0.B16, V0.B16
	VADDP V0.B16, V0.B16, V0.B16
	VADDP V0.B16, V0.B16, V0.B16
	VMOV  V0.S[0], R11

	// Without those before the range and after it.
	MOVD $32, R12
	CMP  R12, R9
	CSEL LT, R9, R12, R12
	MOVD $1, R13
	LSL  R12, R13, R13
	SUB  $1, R13
	SUB  R10, R8, R12
	LSL  R12, R13, R13
	ANDS R13, R11, R11
	BEQ  none

some:
	RBIT   R11, R12
	CLZ    R12, R12
	ADD    R10, R12
	MOVW.P R12, 4(R0)
	SUB    $1, R11, R13
	ANDS   R13, R11, R11
	BNE    some

none:
	ADD  $32, R8
	SUBS $32, R9
	BGT  block

next:
	SUBS $1, R6
	BGE  loop
	MOVD dst+0(FP), R12
	SUB  R12, R0, R0
	LSR  $2, R0, R0
	MOVD R0, ret+80(FP)
	RET

bad:
	MOVD $-1, R0
	MOVD R0, ret+80(FP)
	RET
