#include "textflag.h"

// Products with 128-bit vectors. A tile is four parts of 8 rows x 3 registers.
// Registers of a part:
//	V0-V23  the sums, three registers a row
//	V24-V26 a quarter of a row of b
//	V27-V30 elements of a, in all lanes
//	R0-R7   a[i][p] for the rows i; R8 is the step to the next column
//	R10     the row p of b; R15 is the step to the next
//	R11     c; R12 is its stride
//	R9      how many p are left
// ARR is the arrangement of lanes, S4 or D2.

#define ROW(ARR, A, X, S0, S1, S2) \
	VLD1R.P (A)(R8), [X.ARR];          \
	VFMLA   V24.ARR, X.ARR, S0.ARR;    \
	VFMLA   V25.ARR, X.ARR, S1.ARR;    \
	VFMLA   V26.ARR, X.ARR, S2.ARR

#define LOAD(ARR, S0, S1, S2) \
	VLD1 (R16), [S0.ARR, S1.ARR, S2.ARR]; \
	ADD  R12, R16

#define STORE(ARR, S0, S1, S2) \
	VST1 [S0.ARR, S1.ARR, S2.ARR], (R16); \
	ADD  R12, R16

#define ZERO(S0, S1, S2) \
	VEOR S0.B16, S0.B16, S0.B16; \
	VEOR S1.B16, S1.B16, S1.B16; \
	VEOR S2.B16, S2.B16, S2.B16

// R13 is the offset of the part in the rows of b and c.
#define TILE(ARR) \
	MOVD  row+16(FP), R14;             \
	MOVD  col+24(FP), R8;              \
	MOVD  c+40(FP), R11;               \
	MOVD  stride+48(FP), R12;          \
	MOVBU first+56(FP), R17;           \
	MOVD  $192, R15;                   \
	MOVD  $0, R13;                     \
part:                                      \
	MOVD  n+0(FP), R9;                 \
	MOVD  a+8(FP), R0;                 \
	MOVD  b+32(FP), R10;               \
	ADD   R14, R0, R1;                 \
	ADD   R14, R1, R2;                 \
	ADD   R14, R2, R3;                 \
	ADD   R14, R3, R4;                 \
	ADD   R14, R4, R5;                 \
	ADD   R14, R5, R6;                 \
	ADD   R14, R6, R7;                 \
	ADD   R13, R10;                    \
	CBNZ  R17, zero;                   \
	ADD   R13, R11, R16;               \
	LOAD(ARR, V0, V1, V2);             \
	LOAD(ARR, V3, V4, V5);             \
	LOAD(ARR, V6, V7, V8);             \
	LOAD(ARR, V9, V10, V11);           \
	LOAD(ARR, V12, V13, V14);          \
	LOAD(ARR, V15, V16, V17);          \
	LOAD(ARR, V18, V19, V20);          \
	LOAD(ARR, V21, V22, V23);          \
	B     step;                        \
zero:                                      \
	ZERO(V0, V1, V2);                  \
	ZERO(V3, V4, V5);                  \
	ZERO(V6, V7, V8);                  \
	ZERO(V9, V10, V11);                \
	ZERO(V12, V13, V14);               \
	ZERO(V15, V16, V17);               \
	ZERO(V18, V19, V20);               \
	ZERO(V21, V22, V23);               \
step:                                      \
	VLD1.P (R10)(R15), [V24.ARR, V25.ARR, V26.ARR]; \
	ROW(ARR, R0, V27, V0, V1, V2);     \
	ROW(ARR, R1, V28, V3, V4, V5);     \
	ROW(ARR, R2, V29, V6, V7, V8);     \
	ROW(ARR, R3, V30, V9, V10, V11);   \
	ROW(ARR, R4, V27, V12, V13, V14);  \
	ROW(ARR, R5, V28, V15, V16, V17);  \
	ROW(ARR, R6, V29, V18, V19, V20);  \
	ROW(ARR, R7, V30, V21, V22, V23);  \
	SUBS  $1, R9;                      \
	BNE   step;                        \
	ADD   R13, R11, R16;               \
	STORE(ARR, V0, V1, V2);            \
	STORE(ARR, V3, V4, V5);            \
	STORE(ARR, V6, V7, V8);            \
	STORE(ARR, V9, V10, V11);          \
	STORE(ARR, V12, V13, V14);         \
	STORE(ARR, V15, V16, V17);         \
	STORE(ARR, V18, V19, V20);         \
	STORE(ARR, V21, V22, V23);         \
	ADD   $48, R13;                    \
	CMP   $192, R13;                   \
	BLT   part;                        \
	RET

// SUM12 adds the products of V31 and the 192 bytes at R10, which moves on by R15,
// to V0-V11. Clobbers V12-V23 and R16.
#define SUM12(ARR) \
	ADD    $64, R10, R16;                                        \
	VLD1.P (R10)(R15), [V12.ARR, V13.ARR, V14.ARR, V15.ARR];     \
	VLD1.P 64(R16), [V16.ARR, V17.ARR, V18.ARR, V19.ARR];        \
	VLD1   (R16), [V20.ARR, V21.ARR, V22.ARR, V23.ARR];          \
	VFMLA  V12.ARR, V31.ARR, V0.ARR;                             \
	VFMLA  V13.ARR, V31.ARR, V1.ARR;                             \
	VFMLA  V14.ARR, V31.ARR, V2.ARR;                             \
	VFMLA  V15.ARR, V31.ARR, V3.ARR;                             \
	VFMLA  V16.ARR, V31.ARR, V4.ARR;                             \
	VFMLA  V17.ARR, V31.ARR, V5.ARR;                             \
	VFMLA  V18.ARR, V31.ARR, V6.ARR;                             \
	VFMLA  V19.ARR, V31.ARR, V7.ARR;                             \
	VFMLA  V20.ARR, V31.ARR, V8.ARR;                             \
	VFMLA  V21.ARR, V31.ARR, V9.ARR;                             \
	VFMLA  V22.ARR, V31.ARR, V10.ARR;                            \
	VFMLA  V23.ARR, V31.ARR, V11.ARR

#define STORE12(ARR) \
	VST1.P [V0.ARR, V1.ARR, V2.ARR, V3.ARR], 64(R11);  \
	VST1.P [V4.ARR, V5.ARR, V6.ARR, V7.ARR], 64(R11);  \
	VST1.P [V8.ARR, V9.ARR, V10.ARR, V11.ARR], 64(R11)

#define VECTOR(ARR, SIZE) \
	MOVD  b+16(FP), R10;               \
	MOVD  panels+24(FP), R13;          \
	MOVD  c+32(FP), R11;               \
	MOVD  $192, R15;                   \
	MOVD  $SIZE, R8;                   \
panel:                                     \
	MOVD  n+0(FP), R9;                 \
	MOVD  a+8(FP), R0;                 \
	ZERO(V0, V1, V2);                  \
	ZERO(V3, V4, V5);                  \
	ZERO(V6, V7, V8);                  \
	ZERO(V9, V10, V11);                \
step:                                      \
	VLD1R.P (R0)(R8), [V31.ARR];       \
	SUM12(ARR);                        \
	SUBS  $1, R9;                      \
	BNE   step;                        \
	STORE12(ARR);                      \
	SUBS  $1, R13;                     \
	BNE   panel;                       \
	RET

// func tile32NEON(n int, a unsafe.Pointer, row, col int, b, c unsafe.Pointer, stride int, first bool)
TEXT ·tile32NEON(SB), NOSPLIT, $0-57
	TILE(S4)

// func tile64NEON(n int, a unsafe.Pointer, row, col int, b, c unsafe.Pointer, stride int, first bool)
TEXT ·tile64NEON(SB), NOSPLIT, $0-57
	TILE(D2)

// func row32NEON(n int, a, b unsafe.Pointer, panels int, c unsafe.Pointer)
TEXT ·row32NEON(SB), NOSPLIT, $0-40
	VECTOR(S4, 4)

// func row64NEON(n int, a, b unsafe.Pointer, panels int, c unsafe.Pointer)
TEXT ·row64NEON(SB), NOSPLIT, $0-40
	VECTOR(D2, 8)

// func sparseNEON(n int, index *uint32, value *float32, b, c unsafe.Pointer)
TEXT ·sparseNEON(SB), NOSPLIT, $0-40
	MOVD n+0(FP), R9
	MOVD index+8(FP), R1
	MOVD value+16(FP), R0
	MOVD b+24(FP), R2
	MOVD c+32(FP), R11
	MOVD $192, R15
	MOVD $4, R8
	ZERO(V0, V1, V2)
	ZERO(V3, V4, V5)
	ZERO(V6, V7, V8)
	ZERO(V9, V10, V11)

step:
	MOVWU.P 4(R1), R10
	MADD    R15, R2, R10, R10 // R2 + 192*R10
	VLD1R.P (R0)(R8), [V31.S4]
	SUM12(S4)
	SUBS    $1, R9
	BNE     step
	STORE12(S4)
	RET
