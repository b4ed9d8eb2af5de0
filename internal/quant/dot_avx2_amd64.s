#include "textflag.h"

// Registers as in dot_avx512_amd64.s, but that R8 is a multiple of 16, AX is 0 or 8, and the
// products and squares are in Y0 and Y1.

#define AHEAD 16

// func dotsAVX2(dst *dot, query *int16, dims int, vectors **int8, n, known, span int)
TEXT ·dotsAVX2(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), DI
	MOVQ query+8(FP), SI
	MOVQ dims+16(FP), R8
	MOVQ vectors+24(FP), R9
	MOVQ n+32(FP), CX
	MOVQ known+40(FP), R10
	SUBQ $AHEAD, R10
	MOVQ R8, AX
	ANDQ $8, AX
	SUBQ AX, R8
	MOVQ span+48(FP), R11

row:
	MOVQ       (R9), BX
	DECQ       R10
	JLT        fetched
	MOVQ       (AHEAD*8)(R9), DX
	LEAQ       (DX)(R11*1), R12

fetch:
	PREFETCHT0 (DX)
	ADDQ       $64, DX
	CMPQ       DX, R12
	JLT        fetch

fetched:
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	XORL  DX, DX
	TESTQ R8, R8
	JZ    rest

vector:
	VPMOVSXBW (BX)(DX*1), Y2
	VPMADDWD  (SI)(DX*2), Y2, Y3
	VPMADDWD  Y2, Y2, Y2
	VPADDD    Y3, Y0, Y0
	VPADDD    Y2, Y1, Y1
	ADDQ      $16, DX
	CMPQ      DX, R8
	JLT       vector

rest:
	TESTQ     AX, AX
	JZ        sum
	VPMOVSXBW (BX)(DX*1), X2
	VPMADDWD  (SI)(DX*2), X2, X3
	VPMADDWD  X2, X2, X2
	VPADDD    Y3, Y0, Y0
	VPADDD    Y2, Y1, Y1

sum:
	VPHADDD      Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X2
	VPADDD       X2, X0, X0
	VPHADDD      X0, X0, X0
	VMOVQ        X0, (DI)
	ADDQ         $8, DI
	ADDQ         $8, R9
	DECQ         CX
	JNZ          row
	VZEROUPPER
	RET
