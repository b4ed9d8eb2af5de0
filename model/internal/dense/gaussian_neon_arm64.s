#include "textflag.h"

// The assembler has no names for these, of four float32 each.
#define FADD(M, N, D) WORD $(0x4E20D400 | M<<16 | N<<5 | D) // D = N + M
#define FSUB(M, N, D) WORD $(0x4EA0D400 | M<<16 | N<<5 | D) // D = N - M
#define FMUL(M, N, D) WORD $(0x6E20DC00 | M<<16 | N<<5 | D)
#define FMAX(M, N, D) WORD $(0x4E20F400 | M<<16 | N<<5 | D) // NaN if either is
#define FRINTN(N, D) WORD $(0x4E218800 | N<<5 | D)
#define FCVTNS(N, D) WORD $(0x4E21A800 | N<<5 | D)
#define FCMGT(M, N, D) WORD $(0x6EA0E400 | M<<16 | N<<5 | D) // D = all ones where N > M
#define BIC(M, N, D) WORD $(0x4E601C00 | M<<16 | N<<5 | D) // D = N and not M

#define CONSTANT(BITS, V) \
	MOVW $BITS, R4; \
	VDUP R4, V.S4

// HORNER writes P*r + C to X, with r in V3.
#define HORNER(C, P, X) \
	VMOV  C.B16, X.B16;       \
	VFMLA V3.S4, P.S4, X.S4

// func gaussianNEON(n int, dst, dots, norms *float32, norm, gamma float32)
//
// It computes what gaussian_amd64.h says, to the last bit.
TEXT ·gaussianNEON(SB), NOSPLIT, $0-40
	MOVD  n+0(FP), R0
	MOVD  dst+8(FP), R1
	MOVD  dots+16(FP), R2
	MOVD  norms+24(FP), R3
	MOVWU norm+32(FP), R4
	VDUP  R4, V16.S4
	MOVWU gamma+36(FP), R4
	EORW  $0x80000000, R4
	VDUP  R4, V17.S4
	VEOR  V18.B16, V18.B16, V18.B16
	CONSTANT(0xc2aea8f6, V19) // -87.33
	CONSTANT(0x3fb8aa3b, V20) // 1 / ln 2
	CONSTANT(0x3f318000, V21) // the first digits of ln 2
	CONSTANT(0xb95e8083, V22) // ln 2 less them
	CONSTANT(0x39506967, V23)
	CONSTANT(0x3ab743ce, V24)
	CONSTANT(0x3c088908, V25)
	CONSTANT(0x3d2aa9c1, V26)
	CONSTANT(0x3e2aaaaa, V27)
	CONSTANT(0x3f000000, V28) // 0.5
	CONSTANT(0x3f800000, V29) // 1

loop:
	VLD1.P 16(R3), [V0.S4]
	VLD1.P 16(R2), [V1.S4]
	FADD(0, 16, 0)
	FADD(1, 1, 1)
	FSUB(1, 0, 0)
	FMAX(0, 18, 0)
	FMUL(17, 0, 0)                  // V0 = t
	FMUL(20, 0, 2)
	FRINTN(2, 2)                    // V2 = n
	VMOV   V0.B16, V3.B16
	VFMLS  V21.S4, V2.S4, V3.S4
	VFMLS  V22.S4, V2.S4, V3.S4     // V3 = r
	VMOV   V24.B16, V4.B16
	VFMLA  V3.S4, V23.S4, V4.S4
	HORNER(V25, V4, V5)
	HORNER(V26, V5, V4)
	HORNER(V27, V4, V5)
	HORNER(V28, V5, V4)
	FCVTNS(2, 2)
	VSHL   $23, V2.S4, V2.S4
	FMUL(3, 4, 4)
	VMOV   V3.B16, V5.B16
	VFMLA  V3.S4, V4.S4, V5.S4
	FADD(29, 5, 5)
	VADD   V2.S4, V5.S4, V5.S4
	FCMGT(0, 19, 6)
	BIC(6, 5, 5)
	VST1.P [V5.S4], 16(R1)
	SUBS   $4, R0
	BNE    loop
	RET
