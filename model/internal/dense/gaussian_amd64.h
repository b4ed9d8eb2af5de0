// The Gaussian kernel of the numbers in one register, of any width; the sets
// compute the same, to the last bit.
//
// With t = -gamma d, n = round(t / ln 2) and r = t - n ln 2, where ln 2 is in two
// parts for r to be exact, e^t = 2^n e^r. For |r| <= ln 2 / 2 the polynomial of
// Cephes' expf is within an ulp. It is a normal number, as is 2^n e^r for
// t >= -87.33, so n is added to the exponent as an integer; what that makes of a
// smaller t is put to 0 by the caller. For a NaN, n << 23 is 0.

DATA gaussian<>+0(SB)/4, $0xc2aea8f6  // -87.33
DATA gaussian<>+4(SB)/4, $0x3fb8aa3b  // 1 / ln 2
DATA gaussian<>+8(SB)/4, $0x3f318000  // the first digits of ln 2
DATA gaussian<>+12(SB)/4, $0xb95e8083 // ln 2 less them
DATA gaussian<>+16(SB)/4, $0x39506967 // 1.9875691500e-4
DATA gaussian<>+20(SB)/4, $0x3ab743ce // 1.3981999507e-3
DATA gaussian<>+24(SB)/4, $0x3c088908 // 8.3334519073e-3
DATA gaussian<>+28(SB)/4, $0x3d2aa9c1 // 4.1665795894e-2
DATA gaussian<>+32(SB)/4, $0x3e2aaaaa // 1.6666665459e-1
DATA gaussian<>+36(SB)/4, $0x3f000000 // 0.5
DATA gaussian<>+40(SB)/4, $0x3f800000 // 1
GLOBL gaussian<>(SB), RODATA|NOPTR, $44

// CONSTANTS fills registers with them.
#define CONSTANTS(MIN, INV, HI, LO, C0, C1, C2, C3, C4, HALF, ONE) \
	VBROADCASTSS gaussian<>+0(SB), MIN;   \
	VBROADCASTSS gaussian<>+4(SB), INV;   \
	VBROADCASTSS gaussian<>+8(SB), HI;    \
	VBROADCASTSS gaussian<>+12(SB), LO;   \
	VBROADCASTSS gaussian<>+16(SB), C0;   \
	VBROADCASTSS gaussian<>+20(SB), C1;   \
	VBROADCASTSS gaussian<>+24(SB), C2;   \
	VBROADCASTSS gaussian<>+28(SB), C3;   \
	VBROADCASTSS gaussian<>+32(SB), C4;   \
	VBROADCASTSS gaussian<>+36(SB), HALF; \
	VBROADCASTSS gaussian<>+40(SB), ONE

// EXPONENT turns T, the norms y, X, the dots, and N, the norm of x in all lanes,
// into t in T. VMAXPS keeps a NaN of its first operand here. GAMMA is -gamma in
// all lanes, and N ends as 0.
#define EXPONENT(XOR, T, X, N, GAMMA) \
	VADDPS T, N, T;     \
	VADDPS X, X, X;     \
	VSUBPS X, T, T;     \
	XOR    N, N, N;     \
	VMAXPS T, N, T;     \
	VMULPS GAMMA, T, T

// EXP writes e^T to P, and clobbers N and R.
#define EXP(ROUND, T, P, N, R, INV, HI, LO, C0, C1, C2, C3, C4, HALF, ONE) \
	VMULPS       INV, T, N;   \
	ROUND        $8, N, N;    \
	VMOVAPS      T, R;        \
	VFNMADD231PS HI, N, R;    \
	VFNMADD231PS LO, N, R;    \
	VMOVAPS      C0, P;       \
	VFMADD213PS  C1, R, P;    \
	VFMADD213PS  C2, R, P;    \
	VFMADD213PS  C3, R, P;    \
	VFMADD213PS  C4, R, P;    \
	VFMADD213PS  HALF, R, P;  \
	VCVTPS2DQ    N, N;        \
	VPSLLD       $23, N, N;   \
	VMULPS       R, P, P;     \
	VFMADD213PS  R, R, P;     \
	VADDPS       ONE, P, P;   \
	VPADDD       N, P, P
