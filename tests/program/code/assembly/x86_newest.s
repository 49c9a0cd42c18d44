# Instructions of every opcode map and of every kind, many newer than the disassembler.
.text
.globl _start
.type _start,@function
_start:
 vaddph %zmm1,%zmm2,%zmm3
 vaddph 0x40(%rax,%rbx,4),%zmm2,%zmm3{%k1}
 vcmpph $3,%zmm1,%zmm2,%k1
 vfcmaddcph %zmm1,%zmm2,%zmm3
 vrndscaleph $1,%zmm2,%zmm3
 vgetmantph $1,0x1000(%rax),%zmm3
 serialize
 xsusldtrk
 hreset $0
 senduipi %rax
 clui
 testui
 tilezero %tmm0
 tdpbssd %tmm0,%tmm1,%tmm2
 tileloadd (%rax,%rbx),%tmm0
 ldtilecfg (%rax)
 movdiri %rax,(%rbx)
 movdir64b (%rax),%rbx
 enqcmd (%rax),%rbx
 vpdpbusd %ymm1,%ymm2,%ymm3
 {vex} vpdpbusd %ymm1,%ymm2,%ymm3
 vpdpbssd %ymm1,%ymm2,%ymm3
 vsha512msg1 %xmm1,%ymm2
 vsm3msg1 %xmm1,%xmm2,%xmm3
 vsm3rnds2 $1,%xmm1,%xmm2,%xmm3
 vcvtneps2bf16 %ymm1,%xmm2
 vbcstnesh2ps (%rax),%ymm2
 cmpbexadd %eax,%ebx,(%rcx)
 ptwrite %rax
 rdpid %rax
 wbnoinvd
 clzero
 rdpru
 monitorx
 endbr64
 incsspq %rax
 rdsspq %rax
 saveprevssp
 rstorssp (%rax)
 encls
 tpause %eax
 umonitor %rax
 umwait %eax
 cldemote (%rax)
 prefetchit0 foo(%rip)
 aesenc128kl (%rax),%xmm0
 loadiwkey %xmm0,%xmm1
 gf2p8affineqb $1,%xmm1,%xmm2
 vgf2p8mulb %zmm1,%zmm2,%zmm3
 vp2intersectd %zmm1,%zmm2,%k0
 v4fmaddps (%rax),%zmm0,%zmm4
 vaddbf16 %zmm1,%zmm2,%zmm3
 urdmsr %rax,%rbx
 xbegin foo
 xend
 xabort $1
 xtest
 jrcxz 1f
1: jecxz 1b
 loop 1b
 loope 1b
 loopne 1b
 .byte 0xf2; jmp foo
 notrack jmp *%rax
 notrack call *(%rax)
 rep ret
 ret $8
 lretq
 iretq
 sysretq
 sysexitq
 uiret
 int $0x80
 syscall
 sysenter
 int3
 hlt
 ud2
 ud1 %eax,%ebx
 ljmp *(%rax)
 lcall *(%rax)
 jmp *foo(%rip)
 call *%r11
 jmp *(%rax,%rbx,8)
 .byte 0x66,0x66,0x48
 call foo
 data16 lea foo(%rip),%rdi
 jne foo
 cs nopw 0x0(%rax,%rax,1)
 repz cmpsb
 lock cmpxchg16b (%rax)
 jo foo
 bextr $0x1234,%eax,%ebx
 vfrczps %xmm1,%xmm2
 vprotb $1,%xmm1,%xmm2
 vpcmov %xmm1,%xmm2,%xmm3,%xmm4
 pfadd %mm0,%mm1
 .byte 0xf1
 erets
 eretu
 rsm
 jmpabs $0x123456789abc
 jmp *%r31
 call *(%r20,%r21,4)
 {nf} addw $0x1234,%r20w,%r21w
 ctestew {dfv=} $0x1234,%r20w
 ctesteq {dfv=} $0x1234,%r20
 ctesteb {dfv=} $1,%r20b
 shldq $1,%r16,%r17,%r18
 push2 %rax,%rbx
 pop2p %rax,%rbx
 movzbl (%r30),%r31d
 popcnt %r30,%r31
 imulw $0x123,%r18w,%r19w
{evex} testl $1,%eax
 {nf} negq %r18
 cfcmovne (%r16),%rax
 adcx %r16,%r17,%rax
 movbe (%r16),%rax
 kmovq %k1,%r16
 invept (%r16),%rax
 movrsb (%r16),%al
 enqcmd (%r16),%rax
 urdmsr $0x1234,%rax
 ret
 uwrmsr %rax,$0x1234
 ret
.size _start,.-_start
foo: ret
