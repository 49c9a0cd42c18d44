"""Which instructions take long, as the assembler writes them."""

from __future__ import annotations

import pytest
from builders.fixtures import Link

from lbr2pgo.program.code.decode import are_slow
from lbr2pgo.program.program import Program

SLOW = {
    "x86-64": """
        divq %rcx
        divb %cl
        idivl (%rax)
        lock incl (%rax)
        lock cmpxchg16b (%rdi)
        xchgl %eax, (%rcx)
        rep movsb
        repne scasb
        pause
        cpuid
        rdtsc
        rdtscp
        lfence
        mfence
        divss %xmm0, %xmm1
        sqrtpd (%rax), %xmm9
        vdivps %ymm1, %ymm2, %ymm3
        vsqrtsd %xmm9, %xmm10, %xmm11
        vdivpd %zmm1, %zmm2, %zmm3 {%k1}
        fdivp
        fidivl (%rax)
        fsqrt
        fsin
    """,
    "aarch64": """
        udiv x0, x1, x2
        sdiv w3, w4, w5
        fdiv d0, d1, d2
        fdiv h0, h1, h2
        fdiv v0.4s, v1.4s, v2.4s
        fdiv v0.8h, v1.8h, v2.8h
        fsqrt s0, s1
        fsqrt v0.2d, v1.2d
        fsqrt v0.4h, v1.4h
        ldaxr x0, [x1]
        stxr w0, x1, [x2]
        casal x0, x1, [x2]
        ldadd w0, w1, [x2]
        swpl x0, x1, [x2]
        dmb ish
        isb
    """,
    "riscv64": """
        div a0, a1, a2
        remuw a0, a1, a2
        fdiv.d fa0, fa1, fa2
        fsqrt.s fa0, fa1
        lr.w a0, (a1)
        sc.d.rl a0, a1, (a2)
        amoadd.w.aqrl a0, a1, (a2)
        fence rw, w
        fence.i
    """,
}
QUICK = {
    "x86-64": """
        mulq %rcx
        imulq $3, %rax, %rcx
        notl %eax
        negq (%rax)
        xchgq %rax, %rcx
        movsb
        nop
        repz retq
        incsspq %rax
        addss %xmm0, %xmm1
        rcpps %xmm0, %xmm1
        vmulps %ymm1, %ymm2, %ymm3
        vpermilpd $1, %ymm1, %ymm2
        vaddpd %zmm1, %zmm2, %zmm3
        fld1
        fmulp
        pushq $0x51
        cmpb $0x5e, (%rax)
        jmp 1f
    1:  ud2
    """,
    "aarch64": """
        madd x0, x1, x2, x3
        lslv x0, x1, x2
        fmul d0, d1, d2
        fmul v0.4s, v1.4s, v2.4s
        fneg s0, s1
        fneg v0.2d, v1.2d
        ldr x0, [x1]
        stp x0, x1, [sp, #-16]!
        mrs x0, tpidr_el0
        hint #0
        ret
    """,
    "riscv64": """
        mul a0, a1, a2
        mulhu a0, a1, a2
        add a0, a1, a2
        fmul.d fa0, fa1, fa2
        fsgnj.d fa0, fa1, fa2
        fmadd.s fa0, fa1, fa2, fa3
        ld a0, 8(sp)
        rdtime a0
        c.nop
        ret
    """,
}


@pytest.mark.parametrize("machine", SLOW)
def test_what_takes_long_is_told_by_opcode(link: Link, machine: str) -> None:
    text = f".globl _start\n_start:\n{SLOW[machine]}\nquick:\n{QUICK[machine]}\n"
    program = Program.open(link(text, machine=machine))
    code = program.instructions_for(program.regions.start)
    quick = program.address_of("quick")
    assert quick is not None
    wrong = [
        program.image.read(address, size).hex()
        for address, size, slow in zip(
            code.address.tolist(), code.size.tolist(), are_slow(program.image, code), strict=True
        )
        if slow != (address < quick)
    ]
    assert len(code) > len(SLOW[machine].split("\n"))
    assert wrong == []
