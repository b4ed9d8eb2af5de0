#include "textflag.h"

// Registers:
//	DI  where the next dot goes
//	SI  the query
//	R8  the dimensions that fill vectors of 32, a multiple of 32
//	R9  where the address of the next vector is
//	CX  how many vectors are left
//	R10 how many are left to be fetched ahead
//	R11 how many bytes of each are fetched, and R12 where they end
//	AX  the dimensions behind R8, fewer than 32, and K1 a bit for each
//	BX  the vector
//	DX  the dimension, and scratch
//	Z0  the products and Z1 the squares, in lanes of 32 bits

// How many vectors ahead are fetched.
#define AHEAD 16

// func dotsAVX512(dst *dot, query *int16, dims int, vectors **int8, n, known, span int)
TEXT ·dotsAVX512(SB), NOSPLIT, $0-56
	MOVQ  dst+0(FP), DI
	MOVQ  query+8(FP), SI
	MOVQ  dims+16(FP), R8
	MOVQ  vectors+24(FP), R9
	MOVQ  n+32(FP), CX
	MOVQ  known+40(FP), R10
	SUBQ  $AHEAD, R10
	MOVQ  R8, AX
	ANDQ  $31, AX
	SUBQ  AX, R8
	MOVL  $-1, DX
	BZHIL AX, DX, DX
	KMOVD DX, K1
	MOVQ  span+48(FP), R11

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
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	XORL   DX, DX
	TESTQ  R8, R8
	JZ     rest

vector:
	VPMOVSXBW (BX)(DX*1), Z2
	VPDPWSSD  (SI)(DX*2), Z2, Z0
	VPDPWSSD  Z2, Z2, Z1
	ADDQ      $32, DX
	CMPQ      DX, R8
	JLT       vector

rest:
	TESTQ       AX, AX
	JZ          sum
	VMOVDQU8.Z  (BX)(DX*1), K1, Y2
	VPMOVSXBW   Y2, Z2
	VMOVDQU16.Z (SI)(DX*2), K1, Z3
	VPDPWSSD    Z3, Z2, Z0
	VPDPWSSD    Z2, Z2, Z1

sum:
	VEXTRACTI64X4 $1, Z0, Y2
	VEXTRACTI64X4 $1, Z1, Y3
	VPADDD        Y2, Y0, Y0
	VPADDD        Y3, Y1, Y1
	VPHADDD       Y1, Y0, Y0
	VEXTRACTI128  $1, Y0, X2
	VPADDD        X2, X0, X0
	VPHADDD       X0, X0, X0
	VMOVQ         X0, (DI)
	ADDQ          $8, DI
	ADDQ          $8, R9
	DECQ          CX
	JNZ           row
	VZEROUPPER
	RET
