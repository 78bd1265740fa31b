//go:build !forkcopy

#include "textflag.h"

// func forkGuardian(number, a1, a2, a3 uintptr, p *forkPlan) int
//
// The child goes on below this frame and never returns into it, and so leaves
// the return address alone that the parent, which waits, still needs.
TEXT ·forkGuardian(SB), NOSPLIT, $16-48
	MOVD	a1+8(FP), R0
	MOVD	a2+16(FP), R1
	MOVD	a3+24(FP), R2
	MOVD	ZR, R3
	MOVD	ZR, R4
	MOVD	ZR, R5
	MOVD	p+32(FP), R19
	MOVD	number+0(FP), R8
	SVC
	CBZ	R0, child
	MOVD	R0, ret+40(FP)
	RET
child:
	MOVD	R19, 8(RSP)
	CALL	·guardianChild(SB)
	UNDEF

// func forkHarness(number, a1, a2, a3 uintptr, p *forkPlan) int
//
// The same, but that the child has a stack of its own. It is called by its
// address, since the linker would add what it uses to what there is on ours.
TEXT ·forkHarness(SB), NOSPLIT, $16-48
	MOVD	a1+8(FP), R0
	MOVD	a2+16(FP), R1
	MOVD	a3+24(FP), R2
	MOVD	ZR, R3
	MOVD	ZR, R4
	MOVD	ZR, R5
	MOVD	p+32(FP), R19
	MOVD	number+0(FP), R8
	SVC
	CBZ	R0, child
	MOVD	R0, ret+40(FP)
	RET
child:
	MOVD	R19, 8(RSP)
	MOVD	$·harnessChild(SB), R1
	CALL	(R1)
	UNDEF
