#include "textflag.h"
#include "gaussian_amd64.h"

// lanes at 32-4n is the mask of the first n lanes.
DATA lanes<>+0(SB)/8, $-1
DATA lanes<>+8(SB)/8, $-1
DATA lanes<>+16(SB)/8, $-1
DATA lanes<>+24(SB)/8, $-1
DATA lanes<>+32(SB)/8, $0
DATA lanes<>+40(SB)/8, $0
DATA lanes<>+48(SB)/8, $0
DATA lanes<>+56(SB)/8, $0
GLOBL lanes<>(SB), RODATA|NOPTR, $64

// GAUSSIAN turns Y0, the norms, and Y1, the dots, into the kernels in Y1.
#define GAUSSIAN \
	VBROADCASTSS norm+32(FP), Y2;                \
	EXPONENT(VXORPS, Y0, Y1, Y2, Y15);           \
	EXP(VROUNDPS, Y0, Y1, Y2, Y3, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14); \
	VCMPPS       $5, Y4, Y0, Y0;                 \
	VANDPS       Y0, Y1, Y1

// func gaussianAVX2(n int, dst, dots, norms *float32, norm, gamma float32)
TEXT ·gaussianAVX2(SB), NOSPLIT, $0-40
	MOVQ         n+0(FP), CX
	MOVQ         dst+8(FP), DI
	MOVQ         dots+16(FP), SI
	MOVQ         norms+24(FP), DX
	MOVL         gamma+36(FP), AX
	XORL         $0x80000000, AX
	VMOVD        AX, X15
	VPBROADCASTD X15, Y15
	CONSTANTS(Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14)
	SUBQ         $8, CX
	JLT          last

loop:
	VMOVUPS (DX), Y0
	VMOVUPS (SI), Y1
	GAUSSIAN
	VMOVUPS Y1, (DI)
	ADDQ    $32, DX
	ADDQ    $32, SI
	ADDQ    $32, DI
	SUBQ    $8, CX
	JGE     loop

last:
	ADDQ       $8, CX
	JZ         done
	LEAQ       lanes<>+32(SB), AX
	NEGQ       CX
	LEAQ       (AX)(CX*4), AX
	VMOVUPS    (AX), Y3
	VMASKMOVPS (DX), Y3, Y0
	VMASKMOVPS (SI), Y3, Y1
	GAUSSIAN
	VMOVUPS    (AX), Y3
	VMASKMOVPS Y1, Y3, (DI)

done:
	VZEROUPPER
	RET
