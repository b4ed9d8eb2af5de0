#include "textflag.h"

// The assembler has no names for these, of four float32 each.
#define FMUL(M, N, D) WORD $(0x6E20DC00 | (M)<<16 | (N)<<5 | (D)) // D = N * M
#define FADD(M, N, D) WORD $(0x4E20D400 | (M)<<16 | (N)<<5 | (D)) // D = N + M

// func productNEON(x, y *float32, n int) float32
TEXT ·productNEON(SB), NOSPLIT, $0-28
	MOVD x+0(FP), R0
	MOVD y+8(FP), R1
	MOVD n+16(FP), R2
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	VEOR V6.B16, V6.B16, V6.B16
	VEOR V7.B16, V7.B16, V7.B16

loop:
	VLD1.P 64(R0), [V8.S4, V9.S4, V10.S4, V11.S4]
	VLD1.P 64(R0), [V12.S4, V13.S4, V14.S4, V15.S4]
	VLD1.P 64(R1), [V16.S4, V17.S4, V18.S4, V19.S4]
	VLD1.P 64(R1), [V20.S4, V21.S4, V22.S4, V23.S4]
	FMUL(16, 8, 8)
	FMUL(17, 9, 9)
	FMUL(18, 10, 10)
	FMUL(19, 11, 11)
	FMUL(20, 12, 12)
	FMUL(21, 13, 13)
	FMUL(22, 14, 14)
	FMUL(23, 15, 15)
	FADD(8, 0, 0)
	FADD(9, 1, 1)
	FADD(10, 2, 2)
	FADD(11, 3, 3)
	FADD(12, 4, 4)
	FADD(13, 5, 5)
	FADD(14, 6, 6)
	FADD(15, 7, 7)
	SUBS   $32, R2
	BGT    loop

	FADD(4, 0, 0)
	FADD(5, 1, 1)
	FADD(6, 2, 2)
	FADD(7, 3, 3)
	FADD(2, 0, 0)
	FADD(3, 1, 1)
	FADD(1, 0, 0)
	VEXT  $8, V0.B16, V0.B16, V1.B16
	FADD(1, 0, 0)
	VEXT  $4, V0.B16, V0.B16, V1.B16
	FADD(1, 0, 0)
	FMOVS F0, ret+24(FP)
	RET
