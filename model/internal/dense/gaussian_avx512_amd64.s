#include "textflag.h"
#include "gaussian_amd64.h"

// func gaussianAVX512(n int, dst, dots, norms *float32, norm, gamma float32)
TEXT ·gaussianAVX512(SB), NOSPLIT, $0-40
	MOVQ         n+0(FP), CX
	MOVQ         dst+8(FP), DI
	MOVQ         dots+16(FP), SI
	MOVQ         norms+24(FP), DX
	VBROADCASTSS norm+32(FP), Z30
	MOVL         gamma+36(FP), AX
	XORL         $0x80000000, AX
	VPBROADCASTD AX, Z31
	CONSTANTS(Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26)
	MOVL         $-1, AX
	KMOVW        AX, K1

loop:
	CMPQ CX, $16
	JGE  sixteen
	MOVL  $-1, AX
	SHLL  CX, AX // the lanes that are not left
	NOTL  AX
	KMOVW AX, K1

sixteen:
	VMOVUPS.Z (DX), K1, Z0
	VMOVUPS.Z (SI), K1, Z1
	VMOVAPS   Z30, Z2
	EXPONENT(VPXORQ, Z0, Z1, Z2, Z31)
	EXP(VRNDSCALEPS, Z0, Z1, Z2, Z3, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26)
	VCMPPS    $5, Z16, Z0, K2 // not less, or a NaN
	VMOVAPS.Z Z1, K2, Z1
	VMOVUPS   Z1, K1, (DI)
	ADDQ      $64, DX
	ADDQ      $64, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JGT       loop
	VZEROUPPER
	RET
