//go:build !forkcopy

#include "textflag.h"

// func forkGuardian(number, a1, a2, a3 uintptr, p *forkPlan) int
//
// The child goes on below this frame and never returns into it, and so leaves
// the return address alone that the parent, which waits, still needs.
TEXT ·forkGuardian(SB), NOSPLIT, $8-48
	MOVQ	a1+8(FP), DI
	MOVQ	a2+16(FP), SI
	MOVQ	a3+24(FP), DX
	XORL	R10, R10
	XORL	R8, R8
	XORL	R9, R9
	MOVQ	p+32(FP), R12
	MOVQ	number+0(FP), AX
	SYSCALL
	TESTQ	AX, AX
	JEQ	child
	MOVQ	AX, ret+40(FP)
	RET
child:
	MOVQ	R12, 0(SP)
	CALL	·guardianChild(SB)
	INT	$3

// func forkHarness(number, a1, a2, a3 uintptr, p *forkPlan) int
//
// The same, but that the child has a stack of its own. It is called by its
// address, since the linker would add what it uses to what there is on ours.
TEXT ·forkHarness(SB), NOSPLIT, $8-48
	MOVQ	a1+8(FP), DI
	MOVQ	a2+16(FP), SI
	MOVQ	a3+24(FP), DX
	XORL	R10, R10
	XORL	R8, R8
	XORL	R9, R9
	MOVQ	p+32(FP), R12
	MOVQ	number+0(FP), AX
	SYSCALL
	TESTQ	AX, AX
	JEQ	child
	MOVQ	AX, ret+40(FP)
	RET
child:
	MOVQ	R12, 0(SP)
	LEAQ	·harnessChild(SB), AX
	CALL	AX
	INT	$3
