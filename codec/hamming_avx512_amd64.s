#include "textflag.h"
#include "hamming_avx512_amd64.h"

// Runs of codes that follow each other, which machines fetch ahead by themselves.
// START leaves a pointer to the query in DX. Minima are taken of 32-bit lanes,
// which is faster and the same, as distances have no more bits.
#define START \
	MOVQ         dst+0(FP), DI;    \
	MOVQ         codes+8(FP), SI;  \
	MOVQ         n+16(FP), CX;     \
	MOVQ         query+24(FP), DX; \
	VPBROADCASTQ r+32(FP), Z14;    \
	MOVQ         base+40(FP), BX;  \
	VMOVDQU64    lanes<>(SB), Z13; \
	MOVL         $-1, R15

// func within1AVX512(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64) int
TEXT ·within1AVX512(SB), NOSPLIT, $0-56
	START
	VPBROADCASTQ (DX), Z15
	SUBQ         $32, CX
	JLT          tail
	PCALIGN      $32

loop32:
	VPXORQ   (SI), Z15, Z0
	VPXORQ   64(SI), Z15, Z1
	VPXORQ   128(SI), Z15, Z2
	VPXORQ   192(SI), Z15, Z3
	VPOPCNTQ Z0, Z0
	VPOPCNTQ Z1, Z1
	VPOPCNTQ Z2, Z2
	VPOPCNTQ Z3, Z3
	VPMINUD  Z0, Z1, Z4
	VPMINUD  Z2, Z3, Z5
	VPMINUD  Z4, Z5, Z4
	VPCMPUQ  $2, Z14, Z4, K1
	KORTESTB K1, K1
	JNZ      keep32

next32:
	ADDQ $256, SI
	ADDQ $32, BX
	SUBQ $32, CX
	JGE  loop32

tail:
	ADDQ $32, CX
	JZ   done

loop8:
	FIRST(CX, K2)
	VPXORQ.Z (SI), Z15, K2, Z0
	VPOPCNTQ Z0, Z0
	VPCMPUQ  $2, Z14, Z0, K2, K1
	KORTESTB K1, K1
	JNZ      keep8

next8:
	ADDQ $64, SI
	ADDQ $8, BX
	SUBQ $8, CX
	JGT  loop8

done:
	RETURN(ret+48(FP))

keep32:
	VPCMPUQ $2, Z14, Z0, K1
	VPCMPUQ $2, Z14, Z1, K2
	VPCMPUQ $2, Z14, Z2, K3
	VPCMPUQ $2, Z14, Z3, K4
	KEEP(Z0, K1, 0)
	KEEP(Z1, K2, 8)
	KEEP(Z2, K3, 16)
	KEEP(Z3, K4, 24)
	JMP     next32

keep8:
	KEEPLAST(Z0, K1, 0)
	JMP next8

// func within2AVX512(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64) int
TEXT ·within2AVX512(SB), NOSPLIT, $0-56
	START
	VBROADCASTI32X4 (DX), Z15
	VMOVDQU64       order2<>(SB), Z11
	SUBQ            $16, CX
	JLT             tail
	PCALIGN         $32

loop16:
	VPXORQ   (SI), Z15, Z0
	VPXORQ   64(SI), Z15, Z1
	VPXORQ   128(SI), Z15, Z2
	VPXORQ   192(SI), Z15, Z3
	VPOPCNTQ Z0, Z0
	VPOPCNTQ Z1, Z1
	VPOPCNTQ Z2, Z2
	VPOPCNTQ Z3, Z3
	SUM2(Z0, Z1, Z4)
	SUM2(Z2, Z3, Z5)
	VPMINUD  Z0, Z2, Z4
	VPCMPUQ  $2, Z14, Z4, K1
	KORTESTB K1, K1
	JNZ      keep16

next16:
	ADDQ $256, SI
	ADDQ $16, BX
	SUBQ $16, CX
	JGE  loop16

tail:
	ADDQ $16, CX
	JZ   done

loop8:
	LEAQ     (CX)(CX*1), AX
	FIRST(AX, K2)
	KSHIFTRD $8, K2, K3
	VPXORQ.Z (SI), Z15, K2, Z0
	VPXORQ.Z 64(SI), Z15, K3, Z1
	FIRST(CX, K2)
	VPOPCNTQ Z0, Z0
	VPOPCNTQ Z1, Z1
	SUM2(Z0, Z1, Z4)
	VPERMQ   Z0, Z11, Z0
	VPCMPUQ  $2, Z14, Z0, K2, K1
	KORTESTB K1, K1
	JNZ      keep8

next8:
	ADDQ $128, SI
	ADDQ $8, BX
	SUBQ $8, CX
	JGT  loop8

done:
	RETURN(ret+48(FP))

keep16:
	VPERMQ  Z0, Z11, Z0
	VPERMQ  Z2, Z11, Z2
	VPCMPUQ $2, Z14, Z0, K1
	VPCMPUQ $2, Z14, Z2, K2
	KEEP(Z0, K1, 0)
	KEEP(Z2, K2, 8)
	JMP     next16

keep8:
	KEEPLAST(Z0, K1, 0)
	JMP next8

// func within4AVX512(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64) int
TEXT ·within4AVX512(SB), NOSPLIT, $0-56
	START
	VBROADCASTI64X4 (DX), Z15
	SUBQ            $8, CX
	JLT             tail
	PCALIGN         $32

loop8:
	VPXORQ (SI), Z15, Z0
	VPXORQ 64(SI), Z15, Z1
	VPXORQ 128(SI), Z15, Z2
	VPXORQ 192(SI), Z15, Z3
	KXNORB K1, K1, K1

count8:
	VPOPCNTQ Z0, Z0
	VPOPCNTQ Z1, Z1
	VPOPCNTQ Z2, Z2
	VPOPCNTQ Z3, Z3
	SUM4(Z0, Z1, Z2, Z3, Z4)
	VPERMQ   $0xd8, Z0, Z0
	VPCMPUQ  $2, Z14, Z0, K1, K1
	KORTESTB K1, K1
	JNZ      keep8

next8:
	ADDQ $256, SI
	ADDQ $8, BX
	SUBQ $8, CX
	JGE  loop8

	// CX is less by 8 than the number of codes that are left.
tail:
	ADDQ     $8, CX
	JLE      done
	LEAQ     (CX*4), AX
	FIRST(AX, K2)
	KSHIFTRD $8, K2, K3
	KSHIFTRD $16, K2, K4
	KSHIFTRD $24, K2, K5
	VPXORQ.Z (SI), Z15, K2, Z0
	VPXORQ.Z 64(SI), Z15, K3, Z1
	VPXORQ.Z 128(SI), Z15, K4, Z2
	VPXORQ.Z 192(SI), Z15, K5, Z3
	FIRST(CX, K1)
	SUBQ     $8, CX
	JMP      count8

done:
	RETURN(ret+48(FP))

keep8:
	KEEPLAST(Z0, K1, 0)
	JMP next8

// func withinNAVX512(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64, w int) int
TEXT ·withinNAVX512(SB), NOSPLIT, $0-64
	START
	MOVQ w+48(FP), R14
	FOURSTART
	MOVL $4, AX
	FIRST(AX, K5)
	SUBQ $4, CX
	JLT  tail

loop4:
	FOUR(vector, sum)
	VPCMPUQ  $2, Y14, Y0, K5, K1
	KORTESTB K1, K1
	JNZ      keep4

next4:
	FOURNEXT
	ADDQ $4, BX
	SUBQ $4, CX
	JGE  loop4

	// CX is less by 4 than the number of codes that are left.
tail:
	ADDQ $4, CX
	JLE  done
	FOURLAST
	SUBQ $4, CX
	JMP  loop4

done:
	RETURN(ret+56(FP))

keep4:
	KEEPLAST(Z0, K1, 0)
	JMP next4
