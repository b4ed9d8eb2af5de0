#include "textflag.h"

// Products with 512-bit vectors. Registers of a tile:
//	Z0-Z23  the sums, three registers a row
//	Z24-Z26 a row of b
//	Z27-Z30 elements of a, in all lanes
//	AX      a[0][p]; R8, R9, R10 and R11 are 1, 3, 5 and 7 times the step to
//	        the next row, SI is that to the next column
//	BX      the row p of b
//	DI, DX  c and its stride
//	CX      how many p are left

#define ROW(FMA, BROADCAST, A, X, S0, S1, S2) \
	BROADCAST A, X;       \
	FMA       Z24, X, S0; \
	FMA       Z25, X, S1; \
	FMA       Z26, X, S2

// STEP adds the products of column p of a and row p of b, which is at OFF(BX).
#define STEP(FMA, BROADCAST, OFF) \
	VMOVUPS OFF(BX), Z24;                                    \
	VMOVUPS OFF+64(BX), Z25;                                 \
	VMOVUPS OFF+128(BX), Z26;                                \
	ROW(FMA, BROADCAST, (AX), Z27, Z0, Z1, Z2);              \
	ROW(FMA, BROADCAST, (AX)(R8*1), Z28, Z3, Z4, Z5);        \
	ROW(FMA, BROADCAST, (AX)(R8*2), Z29, Z6, Z7, Z8);        \
	ROW(FMA, BROADCAST, (AX)(R9*1), Z30, Z9, Z10, Z11);      \
	ROW(FMA, BROADCAST, (AX)(R8*4), Z27, Z12, Z13, Z14);     \
	ROW(FMA, BROADCAST, (AX)(R10*1), Z28, Z15, Z16, Z17);    \
	ROW(FMA, BROADCAST, (AX)(R9*2), Z29, Z18, Z19, Z20);     \
	ROW(FMA, BROADCAST, (AX)(R11*1), Z30, Z21, Z22, Z23);    \
	ADDQ    SI, AX

#define LOAD(S0, S1, S2) \
	VMOVUPS (R12), S0;    \
	VMOVUPS 64(R12), S1;  \
	VMOVUPS 128(R12), S2; \
	ADDQ    DX, R12

#define STORE(S0, S1, S2) \
	VMOVUPS S0, (DI);    \
	VMOVUPS S1, 64(DI);  \
	VMOVUPS S2, 128(DI); \
	ADDQ    DX, DI

#define ZERO(S0, S1, S2) \
	VPXORQ S0, S0, S0; \
	VPXORQ S1, S1, S1; \
	VPXORQ S2, S2, S2

#define TILE(FMA, BROADCAST) \
	MOVQ    n+0(FP), CX;       \
	MOVQ    a+8(FP), AX;       \
	MOVQ    row+16(FP), R8;    \
	MOVQ    col+24(FP), SI;    \
	MOVQ    b+32(FP), BX;      \
	MOVQ    c+40(FP), DI;      \
	MOVQ    stride+48(FP), DX; \
	MOVBLZX first+56(FP), R13; \
	LEAQ    (R8)(R8*2), R9;    \
	LEAQ    (R8)(R8*4), R10;   \
	LEAQ    (R9)(R8*4), R11;   \
	TESTL   R13, R13;          \
	JNZ     zero;              \
	MOVQ    DI, R12;           \
	LOAD(Z0, Z1, Z2);          \
	LOAD(Z3, Z4, Z5);          \
	LOAD(Z6, Z7, Z8);          \
	LOAD(Z9, Z10, Z11);        \
	LOAD(Z12, Z13, Z14);       \
	LOAD(Z15, Z16, Z17);       \
	LOAD(Z18, Z19, Z20);       \
	LOAD(Z21, Z22, Z23);       \
	JMP     begin;             \
zero:                              \
	ZERO(Z0, Z1, Z2);          \
	ZERO(Z3, Z4, Z5);          \
	ZERO(Z6, Z7, Z8);          \
	ZERO(Z9, Z10, Z11);        \
	ZERO(Z12, Z13, Z14);       \
	ZERO(Z15, Z16, Z17);       \
	ZERO(Z18, Z19, Z20);       \
	ZERO(Z21, Z22, Z23);       \
begin:                             \
	SUBQ    $2, CX;            \
	JLT     last;              \
two:                               \
	STEP(FMA, BROADCAST, 0);   \
	STEP(FMA, BROADCAST, 192); \
	ADDQ    $384, BX;          \
	SUBQ    $2, CX;            \
	JGE     two;               \
last:                              \
	CMPQ    CX, $-2;           \
	JEQ     done;              \
	STEP(FMA, BROADCAST, 0);   \
done:                              \
	STORE(Z0, Z1, Z2);         \
	STORE(Z3, Z4, Z5);         \
	STORE(Z6, Z7, Z8);         \
	STORE(Z9, Z10, Z11);       \
	STORE(Z12, Z13, Z14);      \
	STORE(Z15, Z16, Z17);      \
	STORE(Z18, Z19, Z20);      \
	STORE(Z21, Z22, Z23);      \
	VZEROUPPER;                \
	RET

// A row goes over two panels at a time: six sums hide the latency of the
// additions. BX and DX are the row p of the panels, R8 is the size of one.
#define SUM3(FMA, B, S0, S1, S2) \
	FMA (B), Z6, S0;    \
	FMA 64(B), Z6, S1;  \
	FMA 128(B), Z6, S2

#define VECTOR(FMA, BROADCAST, SIZE) \
	MOVQ  n+0(FP), R9;        \
	MOVQ  a+8(FP), R10;       \
	MOVQ  b+16(FP), BX;       \
	MOVQ  panels+24(FP), R11; \
	MOVQ  c+32(FP), DI;       \
	IMUL3Q $192, R9, R8;      \
	SUBQ  $2, R11;            \
	JLT   one;                \
pair:                             \
	LEAQ  (BX)(R8*1), DX;     \
	MOVQ  R10, AX;            \
	MOVQ  R9, CX;             \
	ZERO(Z0, Z1, Z2);         \
	ZERO(Z3, Z4, Z5);         \
pairs:                            \
	BROADCAST (AX), Z6;       \
	SUM3(FMA, BX, Z0, Z1, Z2); \
	SUM3(FMA, DX, Z3, Z4, Z5); \
	ADDQ  $SIZE, AX;          \
	ADDQ  $192, BX;           \
	ADDQ  $192, DX;           \
	DECQ  CX;                 \
	JNZ   pairs;              \
	MOVQ  DX, BX;             \
	VMOVUPS Z0, (DI);         \
	VMOVUPS Z1, 64(DI);       \
	VMOVUPS Z2, 128(DI);      \
	VMOVUPS Z3, 192(DI);      \
	VMOVUPS Z4, 256(DI);      \
	VMOVUPS Z5, 320(DI);      \
	ADDQ  $384, DI;           \
	SUBQ  $2, R11;            \
	JGE   pair;               \
one:                              \
	CMPQ  R11, $-2;           \
	JEQ   done;               \
	MOVQ  R10, AX;            \
	MOVQ  R9, CX;             \
	ZERO(Z0, Z1, Z2);         \
ones:                             \
	BROADCAST (AX), Z6;       \
	SUM3(FMA, BX, Z0, Z1, Z2); \
	ADDQ  $SIZE, AX;          \
	ADDQ  $192, BX;           \
	DECQ  CX;                 \
	JNZ   ones;               \
	VMOVUPS Z0, (DI);         \
	VMOVUPS Z1, 64(DI);       \
	VMOVUPS Z2, 128(DI);      \
done:                             \
	VZEROUPPER;               \
	RET

// func tile32AVX512(n int, a unsafe.Pointer, row, col int, b, c unsafe.Pointer, stride int, first bool)
TEXT ·tile32AVX512(SB), NOSPLIT, $0-57
	TILE(VFMADD231PS, VBROADCASTSS)

// func tile64AVX512(n int, a unsafe.Pointer, row, col int, b, c unsafe.Pointer, stride int, first bool)
TEXT ·tile64AVX512(SB), NOSPLIT, $0-57
	TILE(VFMADD231PD, VBROADCASTSD)

// func row32AVX512(n int, a, b unsafe.Pointer, panels int, c unsafe.Pointer)
TEXT ·row32AVX512(SB), NOSPLIT, $0-40
	VECTOR(VFMADD231PS, VBROADCASTSS, 4)

// func row64AVX512(n int, a, b unsafe.Pointer, panels int, c unsafe.Pointer)
TEXT ·row64AVX512(SB), NOSPLIT, $0-40
	VECTOR(VFMADD231PD, VBROADCASTSD, 8)

// func sparseAVX512(n int, index *uint32, value *float32, b unsafe.Pointer, panel, panels int, c unsafe.Pointer)
//
// It goes over one panel or over two.
TEXT ·sparseAVX512(SB), NOSPLIT, $0-56
	MOVQ n+0(FP), CX
	MOVQ index+8(FP), SI
	MOVQ value+16(FP), AX
	MOVQ b+24(FP), BX
	MOVQ panel+32(FP), DX
	MOVQ panels+40(FP), R11
	MOVQ c+48(FP), DI
	ADDQ BX, DX
	ZERO(Z0, Z1, Z2)
	CMPQ R11, $1
	JEQ  one
	ZERO(Z3, Z4, Z5)

pair:
	MOVL         (SI), R8
	LEAQ         (R8)(R8*2), R8
	SHLQ         $6, R8
	VBROADCASTSS (AX), Z6
	VFMADD231PS  (BX)(R8*1), Z6, Z0
	VFMADD231PS  64(BX)(R8*1), Z6, Z1
	VFMADD231PS  128(BX)(R8*1), Z6, Z2
	VFMADD231PS  (DX)(R8*1), Z6, Z3
	VFMADD231PS  64(DX)(R8*1), Z6, Z4
	VFMADD231PS  128(DX)(R8*1), Z6, Z5
	ADDQ         $4, SI
	ADDQ         $4, AX
	DECQ         CX
	JNZ          pair
	VMOVUPS      Z3, 192(DI)
	VMOVUPS      Z4, 256(DI)
	VMOVUPS      Z5, 320(DI)
	JMP          done

one:
	MOVL         (SI), R8
	LEAQ         (R8)(R8*2), R8
	SHLQ         $6, R8
	VBROADCASTSS (AX), Z6
	VFMADD231PS  (BX)(R8*1), Z6, Z0
	VFMADD231PS  64(BX)(R8*1), Z6, Z1
	VFMADD231PS  128(BX)(R8*1), Z6, Z2
	ADDQ         $4, SI
	ADDQ         $4, AX
	DECQ         CX
	JNZ          one

done:
	VMOVUPS Z0, (DI)
	VMOVUPS Z1, 64(DI)
	VMOVUPS Z2, 128(DI)
	VZEROUPPER
	RET

// func widenAVX512(n int, dst *float64, src *float32, stride int)
TEXT ·widenAVX512(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
	MOVQ dst+8(FP), DI
	MOVQ src+16(FP), SI
	MOVQ stride+24(FP), DX
	SHLQ $2, DX

loop:
	VCVTPS2PD (SI), Z0
	VCVTPS2PD 32(SI), Z1
	VCVTPS2PD 64(SI), Z2
	VMOVUPS   Z0, (DI)
	VMOVUPS   Z1, 64(DI)
	VMOVUPS   Z2, 128(DI)
	ADDQ      DX, SI
	ADDQ      $192, DI
	DECQ      CX
	JNZ       loop
	VZEROUPPER
	RET
