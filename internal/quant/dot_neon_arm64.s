#include "textflag.h"

// The assembler has no names for these: they widen and multiply signed numbers.
//	SSHLL  Vd.8H, Vn.8B, #0     the eight bytes as numbers of 16 bits
//	SMLAL  Vd.4S, Vn.4H, Vm.4H  adds the products of the lower four
//	SMLAL2 Vd.4S, Vn.8H, Vm.8H  of the upper four
#define SXTL(n, d) WORD $(0x0F08A400 | (n)<<5 | (d))
#define SMLAL(m, n, d) WORD $(0x0E608000 | (m)<<16 | (n)<<5 | (d))
#define SMLAL2(m, n, d) WORD $(0x4E608000 | (m)<<16 | (n)<<5 | (d))

// Registers:
//	R0  where the next dot goes
//	R1  the query, and R5 where in it
//	R2  the dimensions, and R6 how many are left
//	R3  where the address of the next vector is
//	R4  how many vectors are left
//	R7  how many are left to be fetched ahead
//	R8  where in the vector
//	R10 how many bytes of each are fetched, and R11 where they end
//	V0  the products and V1 the squares of one half, V2 and V3 of the other, in lanes of 32 bits

#define AHEAD 16

// func dotsNEON(dst *dot, query *int16, dims int, vectors **int8, n, known, span int)
TEXT ·dotsNEON(SB), NOSPLIT, $0-56
	MOVD dst+0(FP), R0
	MOVD query+8(FP), R1
	MOVD dims+16(FP), R2
	MOVD vectors+24(FP), R3
	MOVD n+32(FP), R4
	MOVD known+40(FP), R7
	SUB  $AHEAD, R7
	MOVD span+48(FP), R10

row:
	MOVD (R3), R8
	SUBS $1, R7
	BLT  fetched
	MOVD (AHEAD*8)(R3), R9
	ADD  R10, R9, R11

fetch:
	PRFM (R9), PLDL1KEEP
	ADD  $64, R9
	CMP  R11, R9
	BLT  fetch

fetched:
	ADD  $8, R3
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	MOVD R1, R5
	MOVD R2, R6

eight:
	FMOVD.P 8(R8), F4
	VLD1.P  16(R5), [V5.H8]
	SXTL(4, 4)
	SMLAL(5, 4, 0)
	SMLAL2(5, 4, 2)
	SMLAL(4, 4, 1)
	SMLAL2(4, 4, 3)
	SUBS    $8, R6
	BGT     eight

	VADD   V2.S4, V0.S4, V0.S4
	VADD   V3.S4, V1.S4, V1.S4
	VADDP  V1.S4, V0.S4, V0.S4 // two sums of products, two of squares
	VADDP  V0.S4, V0.S4, V0.S4
	FMOVD  F0, (R0)
	ADD    $8, R0
	SUBS   $1, R4
	BNE    row
	RET
