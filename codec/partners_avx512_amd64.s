#include "textflag.h"

// Registers:
//	DI  where the next position goes
//	R8  how many more positions dst has room for
//	R9  the number of values
//	R10 where the next beginning is
//	R11 where the next end is
//	R12 how many ranges are left, less 1
//	R13 the values
//	R14 how many ranges ahead are fetched, or fewer towards the end
//	BX  the position of the next value
//	CX  how many values of the range are left
//	R15 -1
//	K3  which of the next 32 values there are, and K1 which of them count
//	Z15 the query, Z14 least and Z13 most - least in every lane of 16 bits
//	Z12 0, 1 ... 15 in lanes of 32 bits, Z11 16 in each

DATA lanes32<>+0(SB)/8, $0x100000000
DATA lanes32<>+8(SB)/8, $0x300000002
DATA lanes32<>+16(SB)/8, $0x500000004
DATA lanes32<>+24(SB)/8, $0x700000006
DATA lanes32<>+32(SB)/8, $0x900000008
DATA lanes32<>+40(SB)/8, $0xB0000000A
DATA lanes32<>+48(SB)/8, $0xD0000000C
DATA lanes32<>+56(SB)/8, $0xF0000000E
GLOBL lanes32<>(SB), RODATA|NOPTR, $64

#define RANGESAHEAD 12

// STORE stores the lanes of V in mask K. Clobbers AX.
#define STORE(V, K) \
	VPCOMPRESSD.Z V, K, V;       \
	VMOVDQU32     V, (DI);       \
	KMOVW         K, AX;         \
	POPCNTL       AX, AX;        \
	LEAQ          (DI)(AX*4), DI

// func partnersAVX512(dst *uint32, room int, values *uint16, n int, from, to *uint32, k int, query, least, spread int) int
TEXT ·partnersAVX512(SB), NOSPLIT, $0-88
	MOVQ         dst+0(FP), DI
	MOVQ         room+8(FP), R8
	MOVQ         values+16(FP), R13
	MOVQ         n+24(FP), R9
	MOVQ         from+32(FP), R10
	MOVQ         to+40(FP), R11
	MOVQ         k+48(FP), R12
	MOVQ         query+56(FP), AX
	VPBROADCASTW AX, Z15
	MOVQ         least+64(FP), AX
	VPBROADCASTW AX, Z14
	MOVQ         spread+72(FP), AX
	VPBROADCASTW AX, Z13
	VMOVDQU32    lanes32<>(SB), Z12
	MOVL         $16, AX
	VPBROADCASTD AX, Z11
	MOVL         $-1, R15
	DECQ         R12
	MOVL         $RANGESAHEAD, R14

loop:
	CMPQ       R14, R12
	CMOVQGT    R12, R14
	MOVL       (R10)(R14*4), AX
	MOVL       (R10), BX
	MOVL       (R11), CX
	ADDQ       $4, R10
	ADDQ       $4, R11
	CMPQ       CX, R9
	JHI        bad
	SUBQ       BX, CX
	JCS        bad
	SUBQ       CX, R8
	JLT        bad
	PREFETCHT0 (R13)(AX*2)
	PREFETCHT0 64(R13)(AX*2)
	TESTQ      CX, CX
	JZ         next

block:
	MOVL         $32, DX
	CMPQ         CX, DX
	CMOVQLT      CX, DX
	BZHIL        DX, R15, DX
	KMOVD        DX, K3
	VMOVDQU16.Z  (R13)(BX*2), K3, Z0
	VPXORQ       Z15, Z0, Z0
	VPOPCNTW     Z0, Z0
	VPSUBW       Z14, Z0, Z0
	VPCMPUW      $2, Z13, Z0, K3, K1
	KSHIFTRD     $16, K1, K2
	VPBROADCASTD BX, Z1
	VPADDD       Z12, Z1, Z1
	VPADDD       Z11, Z1, Z2

	// Nobody could predict whether any count, and storing none costs less than a
	// wrong guess.
	STORE(Z1, K1)
	STORE(Z2, K2)
	ADDQ $32, BX
	SUBQ $32, CX
	JGT  block

next:
	DECQ R12
	JGE  loop
	SUBQ dst+0(FP), DI
	SHRQ $2, DI
	MOVQ DI, ret+80(FP)
	VZEROUPPER
	RET

bad:
	MOVQ $-1, ret+80(FP)
	VZEROUPPER
	RET
