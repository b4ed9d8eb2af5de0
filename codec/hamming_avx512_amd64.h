// What the kernels with 512-bit vectors and VPOPCNTQ share. Distances are kept in
// 64-bit lanes, one a code. Registers of all kernels:
//	DI  where the next result goes
//	BX  the position of the code that SI points to
//	SI  the next code
//	CX  how many codes are left
//	Z15 the query
//	Z14 r in every lane
//	Z13 0, 1, 2 ... 7
//	R15 all ones
// The loops test once for several vectors whether there is anything to keep;
// where there is, what is kept is written without branches: VPCOMPRESSQ moves
// it to the low lanes of a register, the whole register is stored, and DI moves
// on by as many as count. (VPCOMPRESSQ to memory is slow on some machines.)

DATA lanes<>+0(SB)/8, $0
DATA lanes<>+8(SB)/8, $1
DATA lanes<>+16(SB)/8, $2
DATA lanes<>+24(SB)/8, $3
DATA lanes<>+32(SB)/8, $4
DATA lanes<>+40(SB)/8, $5
DATA lanes<>+48(SB)/8, $6
DATA lanes<>+56(SB)/8, $7
GLOBL lanes<>(SB), RODATA|NOPTR, $64

// VPERMQ indices that undo the order of SUM2: codes 0 4 1 5 2 6 3 7.
DATA order2<>+0(SB)/8, $0
DATA order2<>+8(SB)/8, $2
DATA order2<>+16(SB)/8, $4
DATA order2<>+24(SB)/8, $6
DATA order2<>+32(SB)/8, $1
DATA order2<>+40(SB)/8, $3
DATA order2<>+48(SB)/8, $5
DATA order2<>+56(SB)/8, $7
GLOBL order2<>(SB), RODATA|NOPTR, $64

// COMPRESS turns the distances D of the codes from position BX+OFF on into the
// Nears of those in mask K, in the low lanes of D, and AX into their number.
// Clobbers Z12.
#define COMPRESS(D, K, OFF) \
	LEAQ          OFF(BX), AX;   \
	VPBROADCASTQ  AX, Z12;       \
	VPADDQ        Z13, Z12, Z12; \
	VPSLLQ        $32, D, D;     \
	VPADDQ        Z12, D, D;     \
	VPCOMPRESSQ.Z D, K, D;       \
	KMOVB         K, AX;         \
	POPCNTL       AX, AX

// KEEP appends the Nears of mask K; dst must have room for 8, as it has where the
// 8 codes follow those of the Nears before them. Clobbers AX and Z12.
#define KEEP(D, K, OFF) \
	COMPRESS(D, K, OFF);     \
	VMOVDQU64 D, (DI);       \
	LEAQ      (DI)(AX*8), DI

// KEEPLAST appends them where dst may have room for no more. Clobbers AX, DX, K7
// and Z12.
#define KEEPLAST(D, K, OFF) \
	COMPRESS(D, K, OFF);     \
	BZHIL     AX, R15, DX;   \
	KMOVB     DX, K7;        \
	VMOVDQU64 D, K7, (DI);   \
	LEAQ      (DI)(AX*8), DI

// RETURN returns the number of Nears that were kept.
#define RETURN(ret) \
	SUBQ dst+0(FP), DI; \
	SHRQ $3, DI;        \
	MOVQ DI, ret;       \
	VZEROUPPER;         \
	RET

// FIRST sets the lowest min(N, 32) bits of mask K, N < 256. Clobbers DX.
#define FIRST(N, K) \
	BZHIL N, R15, DX; \
	KMOVD DX, K

// SUM2 adds the counts of words 2i and 2i+1 of A and B: the distances of 8 codes
// of two words in A, in the order that order2 undoes. Clobbers T.
#define SUM2(A, B, T) \
	VPUNPCKHQDQ B, A, T; \
	VPUNPCKLQDQ B, A, A; \
	VPADDQ      T, A, A

// SUM4 adds the counts of words 4i to 4i+3 of A, B, C and D: the distances of 8
// codes of four words in A, each half in the order 0 2 1 3. Clobbers B, C and T.
#define SUM4(A, B, C, D, T) \
	SUM2(A, B, T);             \
	SUM2(C, D, T);             \
	VSHUFI64X2 $0xdd, C, A, T; \
	VSHUFI64X2 $0x88, C, A, A; \
	VPADDQ     T, A, A

// FOUR leaves in the four lanes of Y0 the distances of four codes of any length,
// which R10, R11, R12 and R13 point to. SI points to the query, R8 is the length
// in bytes of its vectors but the last, which has 1 to 8 words, is in Z15, and
// whose words are those of mask K6. Clobbers Z1 to Z5 and R9.
#define FOUR(loop, sum) \
	VPXORQ.Z   (R10)(R8*1), Z15, K6, Z0; \
	VPXORQ.Z   (R11)(R8*1), Z15, K6, Z1; \
	VPXORQ.Z   (R12)(R8*1), Z15, K6, Z2; \
	VPXORQ.Z   (R13)(R8*1), Z15, K6, Z3; \
	VPOPCNTQ   Z0, Z0;                   \
	VPOPCNTQ   Z1, Z1;                   \
	VPOPCNTQ   Z2, Z2;                   \
	VPOPCNTQ   Z3, Z3;                   \
	XORL       R9, R9;                   \
	CMPQ       R9, R8;                   \
	JEQ        sum;                      \
	loop:                                \
	VMOVDQU64  (SI)(R9*1), Z5;           \
	VPXORQ     (R10)(R9*1), Z5, Z4;      \
	VPOPCNTQ   Z4, Z4;                   \
	VPADDQ     Z4, Z0, Z0;               \
	VPXORQ     (R11)(R9*1), Z5, Z4;      \
	VPOPCNTQ   Z4, Z4;                   \
	VPADDQ     Z4, Z1, Z1;               \
	VPXORQ     (R12)(R9*1), Z5, Z4;      \
	VPOPCNTQ   Z4, Z4;                   \
	VPADDQ     Z4, Z2, Z2;               \
	VPXORQ     (R13)(R9*1), Z5, Z4;      \
	VPOPCNTQ   Z4, Z4;                   \
	VPADDQ     Z4, Z3, Z3;               \
	ADDQ       $64, R9;                  \
	CMPQ       R9, R8;                   \
	JNE        loop;                     \
	sum:                                 \
	SUM2(Z0, Z1, Z4);                    \
	SUM2(Z2, Z3, Z4);                    \
	VSHUFI64X2 $0x44, Z2, Z0, Z4;        \
	VSHUFI64X2 $0xee, Z2, Z0, Z0;        \
	VPADDQ     Z4, Z0, Z0;               \
	VSHUFI64X2 $0x0d, Z0, Z0, Z4;        \
	VSHUFI64X2 $0x08, Z0, Z0, Z0;        \
	VPADDQ     Z4, Z0, Z0

// FOURSTART prepares FOUR for codes that follow each other: SI points to the
// first of them, DX to the query, and R14 is the number of words of each.
// R14 becomes four times the length of a code in bytes. Clobbers AX and DX.
#define FOURSTART \
	LEAQ        -1(R14), R8;        \
	ANDQ        $-8, R8;            \
	MOVQ        R14, AX;            \
	SUBQ        R8, AX;             \
	SHLQ        $3, R8;             \
	SHLQ        $3, R14;            \
	MOVQ        SI, R10;            \
	LEAQ        (SI)(R14*1), R11;   \
	LEAQ        (SI)(R14*2), R12;   \
	LEAQ        (R11)(R14*2), R13;  \
	SHLQ        $2, R14;            \
	MOVQ        DX, SI;             \
	FIRST(AX, K6);                  \
	VMOVDQU64.Z (SI)(R8*1), K6, Z15

// FOURNEXT moves on to the next four codes.
#define FOURNEXT \
	ADDQ R14, R10; \
	ADDQ R14, R11; \
	ADDQ R14, R12; \
	ADDQ R14, R13

// FOURLAST lets FOUR read only the first CX codes, CX less than 4: the pointers
// to others go to the first. K5 becomes the mask of the CX lanes. Clobbers DX.
#define FOURLAST \
	CMPQ    CX, $2;   \
	CMOVQLT R10, R11; \
	CMOVQLE R10, R12; \
	MOVQ    R10, R13; \
	FIRST(CX, K5)
