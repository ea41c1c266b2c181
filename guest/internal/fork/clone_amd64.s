#include "textflag.h"

// func cloneShared(args *cloneArgs, size uintptr, p *Program, status uintptr) int
//
// clone3 of a child that shares this memory and runs on a stack of its own: there it calls run, which never returns.
TEXT ·cloneShared(SB), NOSPLIT, $0-40
	MOVQ args+0(FP), DI
	MOVQ size+8(FP), SI
	MOVQ p+16(FP), R12
	MOVQ status+24(FP), R13
	MOVQ $435, AX
	SYSCALL
	TESTQ AX, AX
	JEQ child
	MOVQ AX, ret+32(FP)
	RET

child:
	SUBQ $32, SP
	MOVQ R12, 0(SP)
	MOVQ R13, 8(SP)
	CALL ·run(SB)
	INT $3
