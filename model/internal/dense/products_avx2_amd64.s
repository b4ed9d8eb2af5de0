#include "textflag.h"

// Products with 256-bit vectors. A tile is four parts of 4 rows x 3 registers, as
// many as there are registers for. Registers of a part:
//	Y0-Y11  the sums, three registers a row
//	Y12-Y14 half a row of b
//	Y15     an element of a, in all lanes
//	AX      a[0][p]; R8 and R9 are 1 and 3 times the step to the next row, SI
//	        is that to the next column
//	BX      the row p of b
//	DI, DX  c and its stride
//	CX      how many p are left

#define ROW(FMA, BROADCAST, A, S0, S1, S2) \
	BROADCAST A, Y15;       \
	FMA       Y12, Y15, S0; \
	FMA       Y13, Y15, S1; \
	FMA       Y14, Y15, S2

#define STEP(FMA, BROADCAST, OFF) \
	VMOVUPS OFF(BX), Y12;                          \
	VMOVUPS OFF+32(BX), Y13;                       \
	VMOVUPS OFF+64(BX), Y14;                       \
	ROW(FMA, BROADCAST, (AX), Y0, Y1, Y2);         \
	ROW(FMA, BROADCAST, (AX)(R8*1), Y3, Y4, Y5);   \
	ROW(FMA, BROADCAST, (AX)(R8*2), Y6, Y7, Y8);   \
	ROW(FMA, BROADCAST, (AX)(R9*1), Y9, Y10, Y11); \
	ADDQ    SI, AX

#define LOAD(S0, S1, S2) \
	VMOVUPS (R12), S0;   \
	VMOVUPS 32(R12), S1; \
	VMOVUPS 64(R12), S2; \
	ADDQ    DX, R12

#define STORE(S0, S1, S2) \
	VMOVUPS S0, (R12);   \
	VMOVUPS S1, 32(R12); \
	VMOVUPS S2, 64(R12); \
	ADDQ    DX, R12

#define ZERO(S0, S1, S2) \
	VXORPS S0, S0, S0; \
	VXORPS S1, S1, S1; \
	VXORPS S2, S2, S2

// R10 counts the parts: the upper rows and the lower of the left half, then
// those of the right half.
#define TILE(FMA, BROADCAST) \
	MOVQ    row+16(FP), R8;    \
	MOVQ    col+24(FP), SI;    \
	MOVQ    c+40(FP), DI;      \
	MOVQ    stride+48(FP), DX; \
	MOVBLZX first+56(FP), R13; \
	LEAQ    (R8)(R8*2), R9;    \
	XORL    R10, R10;          \
part:                              \
	MOVQ    n+0(FP), CX;       \
	MOVQ    a+8(FP), AX;       \
	MOVQ    b+32(FP), BX;      \
	MOVQ    DI, R12;           \
	TESTL   $1, R10;           \
	JZ      upper;             \
	LEAQ    (AX)(R8*4), AX;    \
	LEAQ    (R12)(DX*4), R12;  \
upper:                             \
	CMPL    R10, $2;           \
	JLT     left;              \
	ADDQ    $96, BX;           \
	ADDQ    $96, R12;          \
left:                              \
	MOVQ    R12, R11;          \
	TESTL   R13, R13;          \
	JNZ     zero;              \
	LOAD(Y0, Y1, Y2);          \
	LOAD(Y3, Y4, Y5);          \
	LOAD(Y6, Y7, Y8);          \
	LOAD(Y9, Y10, Y11);        \
	JMP     begin;             \
zero:                              \
	ZERO(Y0, Y1, Y2);          \
	ZERO(Y3, Y4, Y5);          \
	ZERO(Y6, Y7, Y8);          \
	ZERO(Y9, Y10, Y11);        \
begin:                             \
	SUBQ    $4, CX;            \
	JLT     tail;              \
four:                              \
	STEP(FMA, BROADCAST, 0);   \
	STEP(FMA, BROADCAST, 192); \
	STEP(FMA, BROADCAST, 384); \
	STEP(FMA, BROADCAST, 576); \
	ADDQ    $768, BX;          \
	SUBQ    $4, CX;            \
	JGE     four;              \
tail:                              \
	ADDQ    $4, CX;            \
	JZ      done;              \
one:                               \
	STEP(FMA, BROADCAST, 0);   \
	ADDQ    $192, BX;          \
	DECQ    CX;                \
	JNZ     one;               \
done:                              \
	MOVQ    R11, R12;          \
	STORE(Y0, Y1, Y2);         \
	STORE(Y3, Y4, Y5);         \
	STORE(Y6, Y7, Y8);         \
	STORE(Y9, Y10, Y11);       \
	INCL    R10;               \
	CMPL    R10, $4;           \
	JLT     part;              \
	VZEROUPPER;                \
	RET

// A row goes over two panels at a time, as there are registers for that. BX and
// DX are the row p of the panels, R8 is the size of one.
#define SUM6(FMA, B, S0, S1, S2, S3, S4, S5) \
	FMA (B), Y15, S0;    \
	FMA 32(B), Y15, S1;  \
	FMA 64(B), Y15, S2;  \
	FMA 96(B), Y15, S3;  \
	FMA 128(B), Y15, S4; \
	FMA 160(B), Y15, S5

#define STORE6(OFF, S0, S1, S2, S3, S4, S5) \
	VMOVUPS S0, OFF(DI);     \
	VMOVUPS S1, OFF+32(DI);  \
	VMOVUPS S2, OFF+64(DI);  \
	VMOVUPS S3, OFF+96(DI);  \
	VMOVUPS S4, OFF+128(DI); \
	VMOVUPS S5, OFF+160(DI)

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
	ZERO(Y0, Y1, Y2);         \
	ZERO(Y3, Y4, Y5);         \
	ZERO(Y6, Y7, Y8);         \
	ZERO(Y9, Y10, Y11);       \
pairs:                            \
	BROADCAST (AX), Y15;      \
	SUM6(FMA, BX, Y0, Y1, Y2, Y3, Y4, Y5);   \
	SUM6(FMA, DX, Y6, Y7, Y8, Y9, Y10, Y11); \
	ADDQ  $SIZE, AX;          \
	ADDQ  $192, BX;           \
	ADDQ  $192, DX;           \
	DECQ  CX;                 \
	JNZ   pairs;              \
	MOVQ  DX, BX;             \
	STORE6(0, Y0, Y1, Y2, Y3, Y4, Y5);     \
	STORE6(192, Y6, Y7, Y8, Y9, Y10, Y11); \
	ADDQ  $384, DI;           \
	SUBQ  $2, R11;            \
	JGE   pair;               \
one:                              \
	CMPQ  R11, $-2;           \
	JEQ   done;               \
	MOVQ  R10, AX;            \
	MOVQ  R9, CX;             \
	ZERO(Y0, Y1, Y2);         \
	ZERO(Y3, Y4, Y5);         \
ones:                             \
	BROADCAST (AX), Y15;      \
	SUM6(FMA, BX, Y0, Y1, Y2, Y3, Y4, Y5); \
	ADDQ  $SIZE, AX;          \
	ADDQ  $192, BX;           \
	DECQ  CX;                 \
	JNZ   ones;               \
	STORE6(0, Y0, Y1, Y2, Y3, Y4, Y5); \
done:                             \
	VZEROUPPER;               \
	RET

// func tile32AVX2(n int, a unsafe.Pointer, row, col int, b, c unsafe.Pointer, stride int, first bool)
TEXT ·tile32AVX2(SB), NOSPLIT, $0-57
	TILE(VFMADD231PS, VBROADCASTSS)

// func tile64AVX2(n int, a unsafe.Pointer, row, col int, b, c unsafe.Pointer, stride int, first bool)
TEXT ·tile64AVX2(SB), NOSPLIT, $0-57
	TILE(VFMADD231PD, VBROADCASTSD)

// func row32AVX2(n int, a, b unsafe.Pointer, panels int, c unsafe.Pointer)
TEXT ·row32AVX2(SB), NOSPLIT, $0-40
	VECTOR(VFMADD231PS, VBROADCASTSS, 4)

// func row64AVX2(n int, a, b unsafe.Pointer, panels int, c unsafe.Pointer)
TEXT ·row64AVX2(SB), NOSPLIT, $0-40
	VECTOR(VFMADD231PD, VBROADCASTSD, 8)

// func sparseAVX2(n int, index *uint32, value *float32, b unsafe.Pointer, panel, panels int, c unsafe.Pointer)
//
// It goes over one panel or over two.
TEXT ·sparseAVX2(SB), NOSPLIT, $0-56
	MOVQ n+0(FP), CX
	MOVQ index+8(FP), SI
	MOVQ value+16(FP), AX
	MOVQ b+24(FP), BX
	MOVQ panel+32(FP), DX
	MOVQ panels+40(FP), R11
	MOVQ c+48(FP), DI
	ADDQ BX, DX
	ZERO(Y0, Y1, Y2)
	ZERO(Y3, Y4, Y5)
	CMPQ R11, $1
	JEQ  one
	ZERO(Y6, Y7, Y8)
	ZERO(Y9, Y10, Y11)

pair:
	MOVL         (SI), R8
	LEAQ         (R8)(R8*2), R8
	SHLQ         $6, R8
	LEAQ         (DX)(R8*1), R9
	ADDQ         BX, R8
	VBROADCASTSS (AX), Y15
	SUM6(VFMADD231PS, R8, Y0, Y1, Y2, Y3, Y4, Y5)
	SUM6(VFMADD231PS, R9, Y6, Y7, Y8, Y9, Y10, Y11)
	ADDQ         $4, SI
	ADDQ         $4, AX
	DECQ         CX
	JNZ          pair
	STORE6(192, Y6, Y7, Y8, Y9, Y10, Y11)
	JMP          done

one:
	MOVL         (SI), R8
	LEAQ         (R8)(R8*2), R8
	SHLQ         $6, R8
	ADDQ         BX, R8
	VBROADCASTSS (AX), Y15
	SUM6(VFMADD231PS, R8, Y0, Y1, Y2, Y3, Y4, Y5)
	ADDQ         $4, SI
	ADDQ         $4, AX
	DECQ         CX
	JNZ          one

done:
	STORE6(0, Y0, Y1, Y2, Y3, Y4, Y5)
	VZEROUPPER
	RET

// func widenAVX2(n int, dst *float64, src *float32, stride int)
TEXT ·widenAVX2(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
	MOVQ dst+8(FP), DI
	MOVQ src+16(FP), SI
	MOVQ stride+24(FP), DX
	SHLQ $2, DX

loop:
	VCVTPS2PD (SI), Y0
	VCVTPS2PD 16(SI), Y1
	VCVTPS2PD 32(SI), Y2
	VCVTPS2PD 48(SI), Y3
	VCVTPS2PD 64(SI), Y4
	VCVTPS2PD 80(SI), Y5
	STORE6(0, Y0, Y1, Y2, Y3, Y4, Y5)
	ADDQ      DX, SI
	ADDQ      $192, DI
	DECQ      CX
	JNZ       loop
	VZEROUPPER
	RET
